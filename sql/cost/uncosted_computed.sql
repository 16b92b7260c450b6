-- Signatures with operands that are computed although kernels would arrange them before, which have no cost as such,
-- of e-nodes on which a result depends. A row that somebody has put into cost holds for all operands.
SELECT DISTINCT o.signature, o.computed
FROM computed_operands AS o
JOIN eclass AS class ON class.id = o.class
JOIN cost ON cost.signature = o.signature
LEFT JOIN computed_cost AS known ON known.signature = o.signature AND known.computed = o.computed
WHERE NOT class.weight_only AND known.signature IS NULL
    AND (cost.source = $source OR starts_with(cost.source, $source || ': '))
ORDER BY o.signature, o.computed
