-- The chosen e-nodes.
SELECT enode FROM chosen ORDER BY enode
