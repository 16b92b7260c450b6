-- The e-graph of these tables as greedy extraction in SQL takes it, from extraction_node: see
-- extract/extraction_nodes.sql.
INSERT INTO greedy_edge
SELECT DISTINCT 0, enode, child
FROM (SELECT id AS enode, unnest([c0, c1, c2, c3, c4]) AS child FROM extraction_node)
WHERE child > 0;

INSERT INTO greedy_node
SELECT 0, n.id, n.class, n.cost_us, coalesce(e.arity, 0)
FROM extraction_node AS n
LEFT JOIN (SELECT enode, count(*) AS arity FROM greedy_edge GROUP BY enode) AS e ON e.enode = n.id;

DROP TABLE extraction_node;
