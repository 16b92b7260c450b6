-- The classes of new e-nodes. Height labels must lie above those of the children: the labels of an
-- application's old classes bound it from below, and its place among the bindings, which grows from
-- operands to results, orders what is new. Of several applications the lowest label holds: each of them
-- builds the children too.
INSERT INTO eclass
WITH
member AS (
    SELECT id AS application, unnest(b) AS class, generate_subscripts(b, 1) AS place
    FROM application WHERE list_max(b) >= $next_id
),
bottom AS (
    SELECT m.application, max(old.height) AS height
    FROM member AS m JOIN eclass AS old ON old.id = m.class GROUP BY m.application
)
SELECT n.id, n.id, any_value(t.type), coalesce(min(bottom.height + m.place), 1), false
FROM enode AS n
JOIN (SELECT DISTINCT signature, type FROM template) AS t ON t.signature = n.signature
LEFT JOIN member AS m ON m.class = n.id
LEFT JOIN bottom USING (application)
WHERE n.id >= $next_id
GROUP BY n.id
