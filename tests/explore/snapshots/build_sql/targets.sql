-- the e-nodes that applications need as one node of their targets and that do not exist
INSERT INTO enode
SELECT
    id, id, signature, head, c0, c1, c2, 0, 0, $iteration, rule, $stamp, false
FROM (
    SELECT
        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,
        min(rule) AS rule, any_value(head) AS head, signature, c0, c1, c2
    FROM (
        SELECT a.id AS application, a.rule, t.signature, t.head, coalesce(a.b[t.s0], 0) AS c0, coalesce(a.b[t.s1], 0) AS c1, coalesce(a.b[t.s2], 0) AS c2
        FROM application AS a JOIN template AS t ON t.instance = a.instance
        WHERE t.step = $step
    ) AS request
    ANTI JOIN (SELECT signature, c0, c1, c2 FROM enode WHERE c3 = 0 AND c4 = 0) AS known USING (signature, c0, c1, c2)
    GROUP BY signature, c0, c1, c2
);

-- the class of this step's e-node, bound in each application
CREATE OR REPLACE TEMP TABLE application AS
SELECT a.id, a.rule, a.instance, a.root0, a.root1, [a.b[1], a.b[2], e.class] AS b
FROM application AS a
LEFT JOIN template AS t ON t.instance = a.instance AND t.step = $step
LEFT JOIN (SELECT * FROM enode WHERE c3 = 0 AND c4 = 0) AS e ON e.signature = t.signature AND e.c0 = coalesce(a.b[t.s0], 0) AND e.c1 = coalesce(a.b[t.s1], 0) AND e.c2 = coalesce(a.b[t.s2], 0);

-- the classes of new e-nodes
INSERT INTO eclass
SELECT class, class, any_value(type), coalesce(min(bottom + place), 1), false
FROM (
    SELECT t.place, a.b[t.place] AS class, t.type, a.bottom
    FROM (
        SELECT instance, b, greatest(height_of[b[1]], height_of[b[2]], height_of[b[3]], height_of[b[4]]) AS bottom
        FROM application, (SELECT list(height ORDER BY id) AS height_of FROM eclass)
        WHERE greatest(b[3], b[4]) >= $next_id
    ) AS a
    JOIN (SELECT instance, type, 2 + step AS place FROM template) AS t USING (instance)
)
WHERE class >= $next_id
GROUP BY class
ORDER BY class;

-- the unions that applications ask for
WITH pair AS (
    SELECT
        least(a, b) AS a, greatest(a, b) AS b, min(application) FILTER (source = 0) AS first
    FROM (
        SELECT
            a.id AS application, 0 AS source, a.root0 AS a, a.b[i.root0] AS b
        FROM application AS a JOIN instance AS i ON i.id = a.instance
    )
    WHERE a > 0 AND a <> b
    GROUP BY least(a, b), greatest(a, b)
)
SELECT 0 AS round, w.rule, pair.a, pair.b, w.instance, 0 AS source, w.b AS bindings
FROM pair JOIN application AS w ON w.id = first;

-- the unions that applications ask for
WITH pair AS (
    SELECT
        least(a, b) AS a, greatest(a, b) AS b, min(application::BIGINT * 2 + source) AS first
    FROM (
        SELECT
            a.id AS application, unnest([0, 1]) AS source, unnest([a.root0, a.root1]) AS a, unnest([a.b[i.root0], a.b[i.root1]]) AS b
        FROM application AS a JOIN instance AS i ON i.id = a.instance
    )
    WHERE a > 0 AND a <> b
    GROUP BY least(a, b), greatest(a, b)
)
SELECT 0 AS round, w.rule, pair.a, pair.b, w.instance, (first % 2)::INTEGER AS source, w.b AS bindings
FROM pair JOIN application AS w ON w.id = (first // 2)::INTEGER;
