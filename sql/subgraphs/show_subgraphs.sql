-- What any subgraph has is extracted from; not what saturation had before them.
UPDATE enode SET filtered = id NOT IN (SELECT enode FROM subgraph_node)
