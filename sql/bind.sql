-- Append the classes of the requested e-nodes to the bindings of their applications.
CREATE OR REPLACE TEMP TABLE application AS
SELECT a.id, a.rule, a.instance, a.root0, a.root1, list_concat(a.b, found.classes) AS b
FROM application AS a
LEFT JOIN (
    SELECT r.application, list(e.class ORDER BY r.position) AS classes
    FROM request AS r JOIN enode AS e USING (signature, c0, c1, c2, c3, c4)
    GROUP BY r.application
) AS found ON found.application = a.id
