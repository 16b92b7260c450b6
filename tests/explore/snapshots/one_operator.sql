-- of the rules swap, square
-- match single f(_, _)
SELECT s.pattern AS pattern, n0.class AS root, n0.stamp AS stamp, n0.signature AS g0, n0.c0 AS v0, n0.c1 AS v1
FROM enode AS n0
JOIN (VALUES (1, 1, FALSE), (2, 2, TRUE)) AS s(pattern, h0, e0) ON s.h0 = n0.head
WHERE n0.head IN (1, 2) AND NOT n0.filtered AND n0.stamp >= $since AND (NOT s.e0 OR n0.c0 = n0.c1);
