-- A member with a child class of which the world has no e-node.
SELECT m.world, m.enode, e.child
FROM world_node AS m
JOIN (SELECT id, unnest([c0, c1, c2, c3, c4]) AS child FROM enode) AS e ON e.id = m.enode
WHERE e.child > 0 AND NOT EXISTS (
    SELECT 1 FROM world_node AS other JOIN enode AS below ON below.id = other.enode
    WHERE other.world = m.world AND below.class = e.child
)
