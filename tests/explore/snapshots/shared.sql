-- of the rules regroup, thrice, factor, swap-inner
WITH p0 AS MATERIALIZED (
SELECT n0.c0 AS n0_c0, n0.c1 AS n0_c1, n0.class AS n0_class, n0.signature AS n0_signature, n1.c0 AS n1_c0, n1.c1 AS n1_c1, n1.signature AS n1_signature, greatest(n0.stamp, n1.stamp) AS stamp
FROM enode AS n0
JOIN enode AS n1 ON n1.class = n0.c0
WHERE n0.head = 1 AND NOT n0.filtered AND n1.head = 1 AND NOT n1.filtered
), p1 AS MATERIALIZED (
SELECT p0.n0_c1 AS n0_c1, p0.n0_class AS n0_class, p0.n0_signature AS n0_signature, p0.n1_c0 AS n1_c0, p0.n1_c1 AS n1_c1, p0.n1_signature AS n1_signature, n2.c0 AS n2_c0, n2.c1 AS n2_c1, n2.signature AS n2_signature, greatest(p0.stamp, n2.stamp) AS stamp
FROM p0
JOIN enode AS n2 ON n2.class = p0.n0_c1
WHERE n2.head = 1 AND NOT n2.filtered AND greatest(p0.stamp, n2.stamp) >= $since
)
-- match single f(f(_, _), _)
SELECT 1 AS pattern, p0.n0_class AS root, p0.stamp AS stamp, p0.n0_signature AS g0, p0.n1_signature AS g1, 0 AS g2, p0.n1_c0 AS v0, p0.n1_c1 AS v1, p0.n0_c1 AS v2, 0 AS v3
FROM p0
WHERE p0.stamp >= $since
UNION ALL
-- match single f(f(_, _), f(_, _))
SELECT 4, p1.n0_class, p1.stamp, p1.n0_signature, p1.n1_signature, p1.n2_signature, p1.n1_c0, p1.n1_c1, p1.n2_c0, p1.n2_c1
FROM p1
UNION ALL
-- match single f(f(_, 1), f(_, 1))
SELECT 3, p1.n0_class, p1.stamp, p1.n0_signature, p1.n1_signature, p1.n2_signature, p1.n1_c0, p1.n1_c1, p1.n2_c0, p1.n2_c1
FROM p1
WHERE p1.n1_c1 = p1.n2_c1
UNION ALL
-- match single f(f(f(_, _), _), _)
SELECT 2, p0.n0_class, greatest(p0.stamp, n2.stamp), p0.n0_signature, p0.n1_signature, n2.signature, n2.c0, n2.c1, p0.n1_c1, p0.n0_c1
FROM p0
JOIN enode AS n2 ON n2.class = p0.n1_c0
WHERE n2.head = 1 AND NOT n2.filtered AND n2.c0 = p0.n1_c1 AND greatest(p0.stamp, n2.stamp) >= $since;
