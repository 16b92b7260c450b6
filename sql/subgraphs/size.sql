-- How many e-nodes a subgraph has.
SELECT count(*) FROM subgraph_node WHERE subgraph = $subgraph
