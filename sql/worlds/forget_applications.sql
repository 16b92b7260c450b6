-- Delete the applications of worlds that were not all written before their process was killed.
DELETE FROM world_application WHERE world > $world
