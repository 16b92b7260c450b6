-- E-nodes that made a graph wrong are not extracted any more.
UPDATE enode SET filtered = true WHERE list_contains($nodes, id)
