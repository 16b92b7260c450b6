-- The e-nodes that come into the subgraph.
INSERT INTO subgraph_node
SELECT
    $subgraph, enode, ($place - 1 + row_number() OVER (ORDER BY application, step, enode))::INTEGER,
    ($last + dense_rank() OVER (ORDER BY application))::INTEGER
FROM entering
