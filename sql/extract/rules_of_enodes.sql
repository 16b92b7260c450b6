-- The rule that made each e-node, by name without its case in brackets; '' for the original graph's.
SELECT e.id, coalesce(split_part(r.name, '[', 1), '')
FROM enode AS e LEFT JOIN rule AS r ON r.id = e.rule
ORDER BY e.id
