-- An e-node of a tree search's subgraph for which there is no application in the universe that the subgraph has the sources of.
SELECT m.subgraph, m.enode
FROM subgraph_node AS m JOIN subgraph AS kept ON kept.id = m.subgraph AND kept.kind IN ('decision', 'rollout')
WHERE m.application > 0 AND NOT EXISTS (
    SELECT 1
    FROM universe_application AS a
    WHERE list_contains(a.targets, m.enode) AND NOT EXISTS (
        SELECT unnest(a.sources) EXCEPT SELECT w.enode FROM subgraph_node AS w WHERE w.subgraph = m.subgraph
    )
)
