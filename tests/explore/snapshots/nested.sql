-- skeleton f(f(_, _), _), of the rules regroup, factor-in
-- match single f(f(_, _), _)
SELECT s.pattern AS pattern, n0.class AS root, greatest(n0.stamp, n1.stamp) AS stamp, n0.signature AS g0, n1.signature AS g1, n1.c0 AS v0, n1.c1 AS v1, n0.c1 AS v2
FROM skeleton_row AS s
JOIN enode AS n0 ON n0.head = s.h0
JOIN enode AS n1 ON n1.class = n0.c0 AND n1.head = s.h1
WHERE s.skeleton = 1 AND NOT n0.filtered AND NOT n1.filtered AND greatest(n0.stamp, n1.stamp) >= $since AND (s.q2 <> 1 OR n1.c1 = n0.c1);
