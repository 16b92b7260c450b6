-- The chosen e-nodes, for building the graph.
SELECT e.class, e.id, e.signature, [e.c0, e.c1, e.c2, e.c3, e.c4] AS children
FROM chosen JOIN enode AS e ON e.id = chosen.enode
ORDER BY e.class
