-- The shown e-nodes of some ids, in their order.
SELECT e.class, [e.c0, e.c1, e.c2, e.c3, e.c4] AS children
FROM (SELECT unnest($enodes) AS id, generate_subscripts($enodes, 1) AS place) AS s
JOIN enode AS e ON e.id = s.id
ORDER BY s.place
