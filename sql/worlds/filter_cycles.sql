-- What cycles/filter_cycles.sql does, for e-nodes given by their places in a world.
UPDATE enode SET filtered = true
WHERE id IN (
    SELECT enode FROM world_node WHERE world = $world AND place IN (SELECT unnest($enodes))
)
