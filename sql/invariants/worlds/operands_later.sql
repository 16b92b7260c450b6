-- A member that came before any e-node of one of its child classes.
SELECT m.world, m.enode, e.child
FROM world_node AS m
JOIN (SELECT id, unnest([c0, c1, c2, c3, c4]) AS child FROM enode) AS e ON e.id = m.enode
JOIN (
    SELECT w.world, n.class, min(w.place) AS first
    FROM world_node AS w JOIN enode AS n ON n.id = w.enode
    GROUP BY w.world, n.class
) AS below ON below.world = m.world AND below.class = e.child
WHERE below.first >= m.place
