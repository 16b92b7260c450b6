-- The e-nodes that the original graph returns, by their first ids.
SELECT class FROM graph_output ORDER BY position
