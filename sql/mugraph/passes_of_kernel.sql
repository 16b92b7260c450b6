-- The joins that let each of its terms pass: the derivation, its operands' abstract classes, and the e-node of these in
-- the abstract e-graph. Of a product that is the e-node of the factors' product, and the sum of that.
WITH same AS (  -- terms of equal value are one e-class, named by its first
    SELECT *, min(id) OVER (PARTITION BY level, config, value, stage) AS first FROM term
)
SELECT DISTINCT
    t.kernel, t.tensor, d.op, x.class AS class_a, y.class AS class_b,
    format('{}({}{}) → {}', m.op, m.a, if(m.b = 0, '', ', ' || m.b), m.class)
    || if(n.class IS NULL, '', format(', sum({}) of {} → {}', n.a, n.size, n.class)) AS e_nodes, t.term
FROM kernel_term AS t
JOIN same AS s ON s.level = t.level AND s.first = t.term
JOIN derivation AS d ON d.level = s.level AND d.term = s.id AND d.op = t.op
JOIN same AS x ON x.level = d.level AND x.id = d.a AND x.first = t.a
LEFT JOIN same AS y ON y.level = d.level AND y.id = d.b
JOIN abstract AS m
    ON m.a = x.class AND m.b = coalesce(y.class, 0)
    AND m.op = CASE d.op WHEN 'matmul' THEN 'mul' ELSE replace(d.op, 'accumulate ', '') END
LEFT JOIN abstract AS n ON d.op = 'matmul' AND n.op = 'sum' AND n.a = m.class AND n.class = s.class
WHERE t.mugraph = $mugraph AND coalesce(y.first, 0) = t.b AND s.class = if(d.op = 'matmul', n.class, m.class)
ORDER BY t.kernel, t.term
