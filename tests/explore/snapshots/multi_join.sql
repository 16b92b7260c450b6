-- of the rules join-left, swap-left
-- match multi f(_, _)
SELECT s.pattern AS pattern, n0.class AS root, n0.stamp AS stamp, n0.signature AS g0, n0.c0 AS v0, n0.c1 AS v1
FROM enode AS n0
JOIN (VALUES (1, 1), (2, 2)) AS s(pattern, h0) ON s.h0 = n0.head
WHERE n0.head IN (1, 2) AND NOT n0.filtered AND n0.stamp >= $since;

-- pairs of matches that share [(0, 0)], of the rules join-left, swap-left
-- join join-left, swap-left
SELECT r.rule, a.root AS root0, b.root AS root1, a.g0 AS g0, b.g0 AS g1,
    [a.v0, a.v1, b.v0, b.v1] AS b, a.rowid AS m0, b.rowid AS m1
FROM rule_join AS r
JOIN match AS a ON a.pattern = r.pattern0
JOIN match AS b ON b.pattern = r.pattern1 AND b.v0 = a.v0
WHERE r.join_group = 1 AND a.root <> b.root
    AND (NOT r.is_symmetric OR a.root < b.root) AND greatest(a.stamp, b.stamp) >= $since
LIMIT 2000000;
