-- The e-nodes that the applications want at one level of their targets; children are bindings so far.
CREATE OR REPLACE TEMP TABLE request AS
SELECT
    a.id AS application, a.rule, t.position, t.signature, t.head,
    coalesce(a.b[t.s0], 0) AS c0, coalesce(a.b[t.s1], 0) AS c1, coalesce(a.b[t.s2], 0) AS c2,
    coalesce(a.b[t.s3], 0) AS c3, coalesce(a.b[t.s4], 0) AS c4
FROM application AS a JOIN template AS t ON t.instance = a.instance
WHERE t.level = $level
