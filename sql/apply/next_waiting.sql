-- The next application alone, with the classes that its roots and bindings have become.
CREATE OR REPLACE TEMP TABLE application AS
SELECT w.id, w.rule, w.instance, r0.parent AS root0, r1.parent AS root1, b.b
FROM waiting AS w
JOIN eclass AS r0 ON r0.id = w.root0
JOIN eclass AS r1 ON r1.id = w.root1
CROSS JOIN (
    SELECT list(coalesce(c.parent, 0) ORDER BY v.place) AS b
    FROM (
        SELECT unnest(b) AS class, generate_subscripts(b, 1) AS place FROM waiting WHERE position = $position
    ) AS v
    LEFT JOIN eclass AS c ON c.id = v.class
) AS b
WHERE w.position = $position AND r0.parent <> r1.parent
