-- The classes of new e-nodes, which stand among the bindings of the applications that they were built for: as
-- many of the last as there were steps. Height labels must lie above those of the children: the labels of an
-- application's old classes bound it from below, and its place among the bindings, which grows from operands
-- to results, orders what is new. Of several applications the lowest label holds: each of them builds the
-- children too.
INSERT INTO eclass
WITH
member AS (
    SELECT
        id AS application, instance, unnest(b) AS class, generate_subscripts(b, 1) AS place,
        generate_subscripts(b, 1) - len(b) + $steps AS step
    FROM application WHERE list_max(b) >= $next_id
),
bottom AS (
    SELECT m.application, max(old.height) AS height
    FROM member AS m JOIN eclass AS old ON old.id = m.class GROUP BY m.application
)
SELECT m.class, m.class, any_value(t.type), coalesce(min(bottom.height + m.place), 1), false
FROM member AS m
JOIN template AS t ON t.instance = m.instance AND t.step = m.step
LEFT JOIN bottom USING (application)
WHERE m.class >= $next_id
GROUP BY m.class
