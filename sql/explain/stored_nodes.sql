-- Every e-node with its children, and which rule made it in which iteration.
SELECT id, class, signature, [c0, c1, c2, c3, c4] AS children, iteration, rule, filtered
FROM enode
ORDER BY id
