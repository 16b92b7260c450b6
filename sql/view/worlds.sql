-- The worlds of a search, in the order in which they were grown.
SELECT id, kind, node_limit, seed_us, best_us, e_nodes, universe, iteration, stop_reason, seconds FROM world ORDER BY id
