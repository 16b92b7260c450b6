-- The e-nodes that a subgraph is grown from, operands first.
INSERT INTO subgraph_node
SELECT $subgraph, s.enode, s.place, 0
FROM (SELECT unnest($enodes) AS enode, generate_subscripts($enodes, 1) AS place) AS s
