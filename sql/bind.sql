-- Append the class of this step's e-node to the bindings of each application (NULL where its target has no
-- so many nodes).
CREATE OR REPLACE TEMP TABLE application AS
SELECT a.id, a.rule, a.instance, a.root0, a.root1, list_append(a.b, e.class) AS b
FROM application AS a
LEFT JOIN template AS t ON t.instance = a.instance AND t.step = $step
LEFT JOIN enode AS e ON e.signature = t.signature
    AND e.c0 = coalesce(a.b[t.s0], 0) AND e.c1 = coalesce(a.b[t.s1], 0)
    AND e.c2 = coalesce(a.b[t.s2], 0) AND e.c3 = coalesce(a.b[t.s3], 0)
    AND e.c4 = coalesce(a.b[t.s4], 0)
