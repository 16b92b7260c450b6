-- Signatures of e-nodes that have no cost yet; of filtered ones, too: explanations pass through them.
SELECT DISTINCT e.signature FROM enode AS e
WHERE NOT EXISTS (SELECT 1 FROM cost WHERE cost.signature = e.signature)
ORDER BY e.signature
