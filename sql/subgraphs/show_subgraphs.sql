-- The e-nodes of all subgraphs are extracted from, without those that saturation had before.
UPDATE enode SET filtered = id NOT IN (SELECT enode FROM subgraph_node)
