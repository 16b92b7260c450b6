-- The extractions, each with the e-nodes that there were then.
SELECT
    x.iteration, coalesce(i.e_nodes, (SELECT count(*) FROM enode WHERE iteration = 0)),
    x.cost_us, x.best_us, x.bound_us, x.optimal, x.seconds
FROM extraction_log AS x LEFT JOIN iteration_log AS i ON i.iteration = x.iteration
ORDER BY x.rowid
