-- Members that are no e-nodes (any more), or twice in a subgraph.
SELECT subgraph, enode FROM subgraph_node AS m WHERE NOT EXISTS (SELECT 1 FROM enode WHERE enode.id = m.enode)
UNION ALL
SELECT subgraph, enode FROM subgraph_node GROUP BY subgraph, enode HAVING count(*) > 1
