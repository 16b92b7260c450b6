-- How many e-nodes a world has.
SELECT count(*) FROM world_node WHERE world = $world
