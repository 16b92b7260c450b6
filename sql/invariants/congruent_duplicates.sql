-- Two rows that are the same e-node.
SELECT signature, c0, c1, c2, c3, c4, count(*) AS copies
FROM enode GROUP BY signature, c0, c1, c2, c3, c4 HAVING count(*) > 1
