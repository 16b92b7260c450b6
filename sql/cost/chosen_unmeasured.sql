-- What of chosen e-nodes has a bound or an estimate for a cost: signatures, with a bit for each operand that is computed although its
-- kernel would arrange it before. What is known before inference costs nothing.
SELECT DISTINCT e.signature, CASE WHEN own.signature IS NULL THEN 0 ELSE own.computed END AS computed
FROM enode AS e
JOIN eclass AS class ON class.id = e.class
JOIN cost ON cost.signature = e.signature
LEFT JOIN computed_operands AS o ON o.enode = e.id
LEFT JOIN computed_cost AS own ON own.signature = o.signature AND own.computed = o.computed
WHERE e.id IN (SELECT unnest($ids)) AND NOT class.weight_only AND coalesce(own.source, cost.source) = $label
ORDER BY ALL
