-- Which classes have an e-node that takes some classes as an operand.
SELECT DISTINCT k.child, k.class
FROM kept_edge AS k
WHERE k.child IN (SELECT unnest($classes::INTEGER[]))
ORDER BY ALL
