-- Of a world that another process was growing: its e-nodes, the place of the next one, its applications.
SELECT
    count(*), coalesce(max(place), 0) + 1,
    (SELECT coalesce(max(id), 0) FROM world_application WHERE world = $world)
FROM world_node WHERE world = $world
