-- An e-node of a tree search's world for which there is no application in the universe that the world has the sources of.
SELECT m.world, m.enode
FROM world_node AS m JOIN world AS kept ON kept.id = m.world AND kept.kind IN ('decision', 'rollout')
WHERE m.application > 0 AND NOT EXISTS (
    SELECT 1
    FROM universe_application AS a
    WHERE list_contains(a.targets, m.enode) AND NOT EXISTS (
        SELECT unnest(a.sources) EXCEPT SELECT w.enode FROM world_node AS w WHERE w.world = m.world
    )
)
