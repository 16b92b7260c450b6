-- The original graph, as far as equal e-nodes have not become one; operands first.
SELECT id FROM enode WHERE iteration = 0 ORDER BY id
