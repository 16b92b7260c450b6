-- Only a subgraph's e-nodes are matched and extracted from now on; none of them is filtered yet.
UPDATE enode SET filtered = id NOT IN (SELECT enode FROM subgraph_node WHERE subgraph = $subgraph)
