-- The extracted graph: class, operands (classes), signature and e-node of each node.
SELECT x.class, list_filter([e.c0, e.c1, e.c2, e.c3, e.c4], lambda c: c > 0) AS children, e.signature, e.id
FROM chosen AS x JOIN enode AS e ON e.id = x.enode
ORDER BY x.class
