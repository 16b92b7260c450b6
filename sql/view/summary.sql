-- The run in a row: source of costs, why exploration ended, sizes, the final extraction's bound and proof.
SELECT
    coalesce((SELECT value FROM meta WHERE key = 'cost_source'), ''),
    coalesce((SELECT value FROM meta WHERE key = 'stop_reason'), ''),
    (SELECT count(*) FROM enode), (SELECT count(*) FROM eclass WHERE parent = id),
    (SELECT count(*) FROM iteration_log),
    coalesce((SELECT last(bound_us ORDER BY rowid) FROM extraction_log), 0.0),
    coalesce((SELECT last(optimal ORDER BY rowid) FROM extraction_log), false)
