-- Names of the original values by the class that they are in now.
SELECT c.parent AS class, v.name, v.enode, v.node_name
FROM original_value AS v JOIN eclass AS c ON c.id = v.enode
ORDER BY v.enode
