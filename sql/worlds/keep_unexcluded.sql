-- Keep what no bound excluded from a world's cheapest graphs, in the order of $enodes.
INSERT INTO world_unexcluded
SELECT $world, k.position, e.signature, e.c0, e.c1, e.c2, e.c3, e.c4
FROM (SELECT unnest($enodes) AS id, generate_subscripts($enodes, 1) AS position) AS k
JOIN enode AS e ON e.id = k.id
