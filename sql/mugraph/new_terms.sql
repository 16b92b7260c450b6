-- Of evaluated candidates, those whose value no term of their configuration has: equality is GROUP BY.
INSERT INTO term
SELECT
    $first + row_number() OVER (ORDER BY e.id) - 1, e.config, e.size, e.dims, e.axes, e.uses, e.loads, e.stage, e.class,
    e.value, list_append(e.parts, $first + row_number() OVER (ORDER BY e.id) - 1)
FROM evaluated AS e
WHERE e.id IN (
    SELECT min(c.id) FROM evaluated AS c
    ANTI JOIN term AS t USING (config, value, stage, class)
    GROUP BY c.config, c.value, c.stage, c.class
)
