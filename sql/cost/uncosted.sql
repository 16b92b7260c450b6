-- Signatures of e-nodes that have no cost, or one that nothing depended on when it was put there and on which
-- something depends now. A result depends on it unless the e-node is filtered, or its class is known before
-- inference; explanations pass through those, too.
SELECT e.signature, bool_or(NOT e.filtered AND NOT class.weight_only) AS matters
FROM enode AS e
JOIN eclass AS class ON class.id = e.class
LEFT JOIN cost ON cost.signature = e.signature
WHERE cost.signature IS NULL OR cost.source = $provisional
GROUP BY e.signature
HAVING matters OR bool_or(cost.signature IS NULL)
ORDER BY e.signature
