-- The classes of new e-nodes: what the last steps have added to the bindings of applications. Height labels must
-- lie above those of the children: the labels of an application's old classes bound it from below, and its
-- place among the bindings, which grows from operands to results, orders what is new. Of several applications
-- the lowest label holds: each of them builds the children too. In the order of their ids: canonicalize sorts
-- by them, which is next to nothing where they are sorted.
INSERT INTO eclass
WITH bottom AS (
    SELECT m.application, max(old.height) AS height
    FROM (SELECT id AS application, unnest(b) AS class FROM application WHERE list_max(b) >= $next_id) AS m
    JOIN eclass AS old ON old.id = m.class
    GROUP BY m.application
)
SELECT class, class, any_value(type), coalesce(min(bottom.height + place), 1), false
FROM (
    SELECT a.id AS application, len(a.b) - $steps + t.step AS place, a.b[place] AS class, t.type
    FROM application AS a JOIN template AS t ON t.instance = a.instance
)
LEFT JOIN bottom USING (application)
WHERE class >= $next_id
GROUP BY class
ORDER BY class
