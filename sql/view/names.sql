-- The original model's names for the values of some classes.
SELECT c.parent, v.name
FROM original_value AS v JOIN eclass AS c ON c.id = v.enode
WHERE c.parent IN (SELECT unnest($classes::INTEGER[]))
ORDER BY v.enode
