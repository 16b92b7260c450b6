-- The e-nodes of the original graph as it was loaded, operands first.
SELECT enode, signature, list_filter(children, lambda c: c > 0) AS children FROM original_node ORDER BY enode
