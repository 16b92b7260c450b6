-- Chosen e-nodes whose cost is a bound or an estimate: signatures, with a bit for each operand that is computed although its
-- kernel would arrange it before. Values known before inference cost nothing.
SELECT DISTINCT e.signature, CASE WHEN own.signature IS NULL THEN 0 ELSE own.computed END AS computed
FROM enode AS e
JOIN eclass AS class ON class.id = e.class
JOIN cost ON cost.signature = e.signature
LEFT JOIN computed_operands AS o ON o.enode = e.id
LEFT JOIN computed_cost AS own ON own.signature = o.signature AND own.computed = o.computed
WHERE e.id IN (SELECT unnest($ids)) AND NOT class.weight_only AND coalesce(own.source, cost.source) = $label
ORDER BY ALL
