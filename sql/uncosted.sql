-- Signatures of kept e-nodes that have no cost yet.
SELECT DISTINCT e.signature FROM enode AS e
WHERE NOT e.filtered AND NOT EXISTS (SELECT 1 FROM cost WHERE cost.signature = e.signature)
ORDER BY e.signature
