-- of the rules regroup, factor-in
-- match single f(f(_, _), _)
SELECT s.pattern AS pattern, n0.class AS root, greatest(n0.stamp, n1.stamp) AS stamp, n0.signature AS g0, n1.signature AS g1, n1.c0 AS v0, n1.c1 AS v1, n0.c1 AS v2
FROM enode AS n0
JOIN enode AS n1 ON n1.class = n0.c0
JOIN (VALUES (1, 1, 1, FALSE), (2, 2, 3, TRUE)) AS s(pattern, h0, h1, e0) ON s.h0 = n0.head AND s.h1 = n1.head
WHERE n0.head IN (1, 2) AND NOT n0.filtered AND n1.head IN (1, 3) AND NOT n1.filtered AND greatest(n0.stamp, n1.stamp) >= $since AND (NOT s.e0 OR n1.c1 = n0.c1);
