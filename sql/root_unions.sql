-- What the applications ask for: the class of each target root joins the class of its source root. Of
-- several that ask for the same union, one is the reason: the first of the rule with the lowest number.
-- Fills union_pair, round 0.
WITH asked AS (
    SELECT
        least(a, b) AS a, greatest(a, b) AS b,
        min(rule::BIGINT << 32 | application << 1 | source) AS reason
    FROM (
        SELECT
            a.id::BIGINT AS application, a.rule, unnest([0, 1]) AS source, unnest([a.root0, a.root1]) AS a,
            unnest([a.b[i.root0], a.b[i.root1]]) AS b
        FROM application AS a JOIN instance AS i ON i.id = a.instance
    )
    WHERE a > 0 AND a <> b
    GROUP BY least(a, b), greatest(a, b)
)
SELECT
    0 AS round, w.rule, asked.a, asked.b, w.instance, (asked.reason & 1)::INTEGER AS source, w.b AS bindings
FROM asked JOIN application AS w ON w.id = (asked.reason & 4294967295) >> 1
