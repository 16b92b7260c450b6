-- All terms in the order of their numbers, for another process.
SELECT id, config, size, dims, axes, uses, loads, stage, class, value, parts FROM term ORDER BY id
