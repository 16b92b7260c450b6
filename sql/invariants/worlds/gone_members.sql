-- Members that are no e-nodes (any more), or twice in a world.
SELECT world, enode FROM world_node AS m WHERE NOT EXISTS (SELECT 1 FROM enode WHERE enode.id = m.enode)
UNION ALL
SELECT world, enode FROM world_node GROUP BY world, enode HAVING count(*) > 1
