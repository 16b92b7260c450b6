-- of the rules thrice
-- match single f(f(f(_)))
SELECT 1 AS pattern, n0.class AS root, greatest(n0.stamp, n1.stamp, n2.stamp) AS stamp, n0.signature AS g0, n1.signature AS g1, n2.signature AS g2, n2.c0 AS v0
FROM enode AS n0
JOIN enode AS n1 ON n1.class = n0.c0
JOIN enode AS n2 ON n2.class = n1.c0
WHERE n0.head = 1 AND NOT n0.filtered AND n1.head = 1 AND NOT n1.filtered AND n2.head = 1 AND NOT n2.filtered AND greatest(n0.stamp, n1.stamp, n2.stamp) >= $since;
