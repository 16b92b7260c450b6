-- In a world, the age of an e-node is its place.
UPDATE cycle_core SET age = m.place FROM world_node AS m WHERE m.world = $world AND m.enode = cycle_core.enode
