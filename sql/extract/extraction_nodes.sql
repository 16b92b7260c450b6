-- Kept e-nodes with the cost of choosing them. E-nodes that depend on weights only are folded before inference:
-- it is free, and in a class that can be had from weights only, nothing else is worth choosing. Where operands are
-- computed that kernels usually find as constants, computed_cost holds. Facts about classes are looked up in
-- one list: a join for each operand took twice as long to plan as all else.
SELECT
    e.id, e.class, e.c0, e.c1, e.c2, e.c3, e.c4, e.iteration, known.weight_only[e.class] AS weight_only,
    coalesce(known.weight_only[e.c0], true) AND coalesce(known.weight_only[e.c1], true)
    AND coalesce(known.weight_only[e.c2], true) AND coalesce(known.weight_only[e.c3], true)
    AND coalesce(known.weight_only[e.c4], true) AS takes_weights_only,
    CASE WHEN known.weight_only[e.class] THEN 0.0 ELSE coalesce(own.cost_us, cost.cost_us) END AS cost_us
FROM enode AS e
CROSS JOIN (SELECT list(weight_only ORDER BY id) AS weight_only FROM eclass) AS known
JOIN cost ON cost.signature = e.signature
JOIN signature AS s ON s.id = e.signature
JOIN symbol AS y ON y.id = s.symbol
LEFT JOIN computed_cost AS own ON own.signature = e.signature AND own.computed = s.prepared & (
    coalesce(NOT known.weight_only[e.c0], false)::INTEGER
    + 2 * coalesce(NOT known.weight_only[e.c1], false)::INTEGER
    + 4 * coalesce(NOT known.weight_only[e.c2], false)::INTEGER
    + 8 * coalesce(NOT known.weight_only[e.c3], false)::INTEGER
    + 16 * coalesce(NOT known.weight_only[e.c4], false)::INTEGER
)
WHERE NOT e.filtered AND (NOT known.weight_only[e.class] OR (y.foldable AND takes_weights_only))
ORDER BY e.id
