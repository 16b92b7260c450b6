-- The abstract classes of a program's tensors by their names.
SELECT v.name, c.parent AS class
FROM original_value AS v
JOIN eclass AS c ON c.id = v.enode;
