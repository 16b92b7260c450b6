-- The e-nodes that a world is grown from, operands first.
INSERT INTO world_node
SELECT $world, s.enode, s.place, 0
FROM (SELECT unnest($enodes) AS enode, generate_subscripts($enodes, 1) AS place) AS s
