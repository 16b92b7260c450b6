-- Nodes of the search trees: of each decision those with most visits, so many in all trees. A parent has no fewer.
SELECT n.decision, n.id, n.parent, r.name, n.visits, n.value_ms / greatest(n.visits, 1), n.cost_us, n.e_nodes, n.state
FROM tree_node AS n JOIN rule AS r ON r.id = n.rule
QUALIFY row_number() OVER (PARTITION BY n.decision ORDER BY n.visits DESC, n.id) <= $most / (SELECT count(*) FROM tree_decision)
ORDER BY n.decision, n.id
