-- The e-nodes that the original graph returns, by the numbers that they were given.
SELECT class FROM graph_output ORDER BY position
