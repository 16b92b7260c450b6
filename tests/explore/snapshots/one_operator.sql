-- skeleton f(_, _), of the rules swap, square
-- match single f(_, _)
SELECT s.pattern AS pattern, n0.class AS root, greatest(n0.stamp) AS stamp, n0.signature AS g0, n0.c0 AS v0, n0.c1 AS v1
FROM skeleton_row AS s
JOIN enode AS n0 ON n0.head = s.h0
WHERE s.skeleton = 1 AND NOT n0.filtered AND greatest(n0.stamp) >= $since AND (s.q1 <> 0 OR n0.c0 = n0.c1);
