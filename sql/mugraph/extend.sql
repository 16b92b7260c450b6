-- Operators that apply to the terms of one size, and to them with smaller ones: each join with the abstract
-- e-graph leaves only terms that can still become the program. Of a commutative operator the later term is first.
INSERT INTO candidate
WITH fresh AS (SELECT * FROM term WHERE size = $size)
-- functions of one element
SELECT
    x.config, m.op, m.name, 0, x.id, 0, x.size + 1, x.dims, x.axes, x.uses, x.loads, x.stage, m.class, x.parts
FROM fresh AS x
JOIN abstract AS m ON m.a = x.class AND m.b = 0 AND m.op NOT IN ('sum', 'rms', 'reduce_max')
WHERE x.size < $most
UNION ALL
-- sums, root mean squares and maxima over a variable of a tile
SELECT
    x.config, m.op, m.name, e.variable, x.id, 0, x.size + 1, xor(x.dims, e.variable), x.axes, x.uses, x.loads, x.stage,
    m.class, x.parts
FROM fresh AS x
JOIN extent AS e ON e.config = x.config AND x.dims & e.variable <> 0
JOIN abstract AS m ON m.a = x.class AND m.op IN ('sum', 'rms', 'reduce_max') AND m.size = e.size
SEMI JOIN summable AS s ON s.variable = e.variable AND s.op = m.op AND s.inputs = s.carriers & x.uses
WHERE x.size < $most
UNION ALL
-- accumulators that sum
SELECT
    x.config, 'accumulate sum', '', 0, x.id, 0, x.size + 1, x.dims, x.axes, x.uses, x.loads, 1, m.class, x.parts
FROM fresh AS x
JOIN config AS c ON c.id = x.config
JOIN abstract AS m ON m.a = x.class AND m.op = 'sum' AND m.size = c.iterations
SEMI JOIN summable AS s ON s.variable = c.loop AND s.op = 'sum' AND s.inputs = s.carriers & x.uses
WHERE x.stage = 0 AND x.dims & c.loop = 0 AND x.size < $most
UNION ALL
-- accumulators that concatenate computed tiles; loaded ones could be loaded whole
SELECT
    x.config, 'accumulate concat', '', c.loop, x.id, 0, x.size + 1, x.dims, x.axes, x.uses, x.loads, 1, x.class, x.parts
FROM fresh AS x
JOIN config AS c ON c.id = x.config
WHERE x.stage = 0 AND x.dims & c.loop <> 0 AND x.size BETWEEN 1 AND $most - 1
UNION ALL
-- accumulators of the root mean square, and of the maximum
SELECT
    x.config, 'accumulate ' || m.op, m.name, c.loop, x.id, 0, x.size + 1, xor(x.dims, c.loop), x.axes, x.uses, x.loads, 1,
    m.class, x.parts
FROM fresh AS x
JOIN config AS c ON c.id = x.config
JOIN extent AS e ON e.config = x.config AND e.variable = c.loop
JOIN abstract AS m ON m.a = x.class AND m.op IN ('rms', 'reduce_max') AND m.size = e.size * c.iterations
SEMI JOIN summable AS s ON s.variable = c.loop AND s.op = m.op AND s.inputs = s.carriers & x.uses
WHERE x.stage = 0 AND x.dims & c.loop <> 0 AND x.size < $most
UNION ALL
-- functions of two elements: one has all variables of the other
SELECT
    pair.config, m.op, m.name, 0, pair.a, pair.b, len(pair.parts) + 1, pair.dims, pair.axes, pair.uses, pair.loads, pair.stage,
    m.class, pair.parts
FROM (
    SELECT
        x.config, x.id AS a, y.id AS b, x.class AS class_a, y.class AS class_b, x.id - y.id AS order_of,
        x.dims | y.dims AS dims, x.axes | y.axes AS axes, x.uses | y.uses AS uses,
        x.loads | y.loads AS loads, least(x.stage, y.stage) AS stage,
        list_distinct(list_concat(x.parts, y.parts)) AS parts
    FROM term AS x
    JOIN term AS y ON y.config = x.config
    WHERE
        greatest(x.size, y.size) = $size
        AND x.dims | y.dims IN (x.dims, y.dims) AND (x.stage = y.stage OR 2 IN (x.stage, y.stage))
) AS pair
JOIN abstract AS m ON m.a = pair.class_a AND m.b = pair.class_b AND IF(m.op NOT IN ('add', 'mul') OR NOT $canonical, order_of <> 0 OR m.op IN ('add', 'mul'), order_of >= 0)
WHERE len(pair.parts) < $most
UNION ALL
-- comparisons of which each operand has variables of its own: of positions along two axes, as masks have them
SELECT
    x.config, m.op, m.name, 0, x.id, y.id, len(list_distinct(list_concat(x.parts, y.parts))) + 1,
    x.dims | y.dims, x.axes | y.axes, x.uses | y.uses, x.loads | y.loads, least(x.stage, y.stage), m.class,
    list_distinct(list_concat(x.parts, y.parts))
FROM abstract AS m
JOIN term AS x ON x.class = m.a
JOIN term AS y ON y.config = x.config AND y.class = m.b
WHERE
    m.op IN ('less', 'less_or_equal', 'equal') AND greatest(x.size, y.size) = $size
    AND x.dims | y.dims NOT IN (x.dims, y.dims) AND (x.stage = y.stage OR 2 IN (x.stage, y.stage))
    AND len(list_distinct(list_concat(x.parts, y.parts))) < $most
UNION ALL
-- products summed over a variable that both have
SELECT
    x.config, 'matmul', '', e.variable, x.id, y.id, len(list_distinct(list_concat(x.parts, y.parts))) + 1,
    xor(x.dims | y.dims, e.variable), x.axes | y.axes, x.uses | y.uses, x.loads | y.loads, least(x.stage, y.stage), s.class,
    list_distinct(list_concat(x.parts, y.parts))
FROM term AS x
JOIN term AS y ON y.config = x.config AND (y.id < x.id OR (NOT $canonical AND y.id <> x.id))
JOIN extent AS e ON e.config = x.config AND x.dims & y.dims & e.variable <> 0
JOIN abstract AS m ON m.a = x.class AND m.b = y.class AND m.op = 'mul'
JOIN abstract AS s ON s.a = m.class AND s.op = 'sum' AND s.size = e.size
SEMI JOIN summable AS i
    ON i.variable = e.variable AND i.op = 'sum' AND i.inputs = i.carriers & (x.uses | y.uses)
WHERE
    greatest(x.size, y.size) = $size AND (x.stage = y.stage OR 2 IN (x.stage, y.stage))
    AND len(list_distinct(list_concat(x.parts, y.parts))) < $most
