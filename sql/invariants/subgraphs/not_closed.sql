-- A member with a child class of which the subgraph has no e-node.
SELECT m.subgraph, m.enode, e.child
FROM subgraph_node AS m
JOIN (SELECT id, unnest([c0, c1, c2, c3, c4]) AS child FROM enode) AS e ON e.id = m.enode
WHERE e.child > 0 AND NOT EXISTS (
    SELECT 1 FROM subgraph_node AS other JOIN enode AS below ON below.id = other.enode
    WHERE other.subgraph = m.subgraph AND below.class = e.child
)
