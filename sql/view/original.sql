-- The original graph as it was loaded, operands first: class and e-node that each node is by now.
SELECT o.enode, list_filter(o.children, lambda c: c > 0) AS children, o.signature, class.parent AS class, e.id
FROM original_node AS o
JOIN eclass AS class ON class.id = o.enode
LEFT JOIN eclass AS k0 ON k0.id = o.children[1]
LEFT JOIN eclass AS k1 ON k1.id = o.children[2]
LEFT JOIN eclass AS k2 ON k2.id = o.children[3]
LEFT JOIN eclass AS k3 ON k3.id = o.children[4]
LEFT JOIN eclass AS k4 ON k4.id = o.children[5]
JOIN enode AS e ON e.signature = o.signature
    AND e.c0 = coalesce(k0.parent, 0) AND e.c1 = coalesce(k1.parent, 0) AND e.c2 = coalesce(k2.parent, 0)
    AND e.c3 = coalesce(k3.parent, 0) AND e.c4 = coalesce(k4.parent, 0)
ORDER BY o.enode
