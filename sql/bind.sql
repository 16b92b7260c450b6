-- Append the classes of the e-nodes of one level to the bindings of their applications.
CREATE OR REPLACE TEMP TABLE application AS
WITH request AS MATERIALIZED (
    SELECT
        a.id AS application, a.rule, t.position, t.signature, t.head,
        coalesce(a.b[t.s0], 0) AS c0, coalesce(a.b[t.s1], 0) AS c1, coalesce(a.b[t.s2], 0) AS c2,
        coalesce(a.b[t.s3], 0) AS c3, coalesce(a.b[t.s4], 0) AS c4
    FROM application AS a JOIN template AS t ON t.instance = a.instance
    WHERE t.level = $level
)
SELECT a.id, a.rule, a.instance, a.root0, a.root1, list_concat(a.b, found.classes) AS b
FROM application AS a
LEFT JOIN (
    SELECT r.application, list(e.class ORDER BY r.position) AS classes
    FROM request AS r JOIN enode AS e USING (signature, c0, c1, c2, c3, c4)
    GROUP BY r.application
) AS found ON found.application = a.id
