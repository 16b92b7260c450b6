-- Kept e-nodes with the cost of choosing them. What depends on weights only is folded before inference:
-- it is free, and in a class that can be had from weights only, nothing else is worth choosing. Where operands are
-- computed that kernels usually find as constants, computed_cost holds.
SELECT
    e.id, e.class, e.c0, e.c1, e.c2, e.c3, e.c4, e.iteration, class.weight_only,
    coalesce(k0.weight_only, true) AND coalesce(k1.weight_only, true) AND coalesce(k2.weight_only, true)
    AND coalesce(k3.weight_only, true) AND coalesce(k4.weight_only, true) AS takes_weights_only,
    CASE WHEN class.weight_only THEN 0.0 ELSE coalesce(own.cost_us, cost.cost_us) END AS cost_us
FROM enode AS e
JOIN eclass AS class ON class.id = e.class
JOIN cost ON cost.signature = e.signature
JOIN signature AS s ON s.id = e.signature
JOIN symbol AS y ON y.id = s.symbol
LEFT JOIN (
    SELECT o.enode, o_cost.cost_us
    FROM computed_operands AS o
    JOIN computed_cost AS o_cost ON o_cost.signature = o.signature AND o_cost.computed = o.computed
) AS own ON own.enode = e.id
LEFT JOIN eclass AS k0 ON k0.id = e.c0
LEFT JOIN eclass AS k1 ON k1.id = e.c1
LEFT JOIN eclass AS k2 ON k2.id = e.c2
LEFT JOIN eclass AS k3 ON k3.id = e.c3
LEFT JOIN eclass AS k4 ON k4.id = e.c4
WHERE NOT e.filtered AND (NOT class.weight_only OR (y.foldable AND takes_weights_only))
ORDER BY e.id
