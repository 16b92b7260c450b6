-- In a subgraph, the age of an e-node is its place.
UPDATE cycle_core SET age = m.place FROM subgraph_node AS m WHERE m.subgraph = $subgraph AND m.enode = cycle_core.enode
