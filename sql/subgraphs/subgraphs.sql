-- The subgraphs that have been grown and extracted from.
FROM subgraph ORDER BY id
