-- Keep the cheapest graph of a subgraph, its e-nodes in the order of $enodes (children first).
INSERT INTO subgraph_choice
SELECT $subgraph, k.position, e.signature, e.c0, e.c1, e.c2, e.c3, e.c4
FROM (SELECT unnest($enodes) AS id, generate_subscripts($enodes, 1) AS position) AS k
JOIN enode AS e ON e.id = k.id
