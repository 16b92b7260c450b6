-- A member that came before any e-node of one of its child classes.
SELECT m.subgraph, m.enode, e.child
FROM subgraph_node AS m
JOIN (SELECT id, unnest([c0, c1, c2, c3, c4]) AS child FROM enode) AS e ON e.id = m.enode
JOIN (
    SELECT w.subgraph, n.class, min(w.place) AS first
    FROM subgraph_node AS w JOIN enode AS n ON n.id = w.enode
    GROUP BY w.subgraph, n.class
) AS below ON below.subgraph = m.subgraph AND below.class = e.child
WHERE below.first >= m.place
