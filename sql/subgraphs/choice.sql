-- The e-nodes of a subgraph's cheapest graph as they are now, children first; as extract/kept_choice.sql.
SELECT e.id, e.class, [e.c0, e.c1, e.c2, e.c3, e.c4] AS children
FROM (SELECT * FROM subgraph_choice WHERE subgraph = $subgraph) AS k
LEFT JOIN eclass AS k0 ON k0.id = k.c0
LEFT JOIN eclass AS k1 ON k1.id = k.c1
LEFT JOIN eclass AS k2 ON k2.id = k.c2
LEFT JOIN eclass AS k3 ON k3.id = k.c3
LEFT JOIN eclass AS k4 ON k4.id = k.c4
JOIN enode AS e ON e.signature = k.signature AND e.c0 = coalesce(k0.parent, 0)
    AND e.c1 = coalesce(k1.parent, 0) AND e.c2 = coalesce(k2.parent, 0)
    AND e.c3 = coalesce(k3.parent, 0) AND e.c4 = coalesce(k4.parent, 0)
ORDER BY k.position, e.id
