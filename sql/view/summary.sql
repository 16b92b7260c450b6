-- The run in a row: e-nodes, e-classes, iterations, the final extraction's bound and whether it is proven.
SELECT
    (SELECT count(*) FROM enode), (SELECT count(*) FROM eclass WHERE parent = id),
    (SELECT count(*) FROM iteration_log),
    coalesce((SELECT last(bound_us ORDER BY rowid) FROM extraction_log), 0.0),
    coalesce((SELECT last(optimal ORDER BY rowid) FROM extraction_log), false)
