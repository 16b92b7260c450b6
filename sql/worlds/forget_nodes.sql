-- Delete the e-nodes of worlds that were not all written before their process was killed.
DELETE FROM world_node WHERE world > $world
