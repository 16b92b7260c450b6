-- The ledger of a fleet: the result of each model. One process writes it.
CREATE TABLE fleet_format AS SELECT '4' AS version;
COMMENT ON TABLE fleet_format IS 'The version of these tables.';
COMMENT ON COLUMN fleet_format.version IS 'Raised when a table changes its meaning; others are refused.';

CREATE TABLE fleet_event (
    model VARCHAR NOT NULL, attempt INTEGER NOT NULL, moment TIMESTAMP NOT NULL, ending VARCHAR, host VARCHAR, run VARCHAR,
    report VARCHAR
);
COMMENT ON TABLE fleet_event IS
'Beginnings and ends of attempts, in their order: one statement writes both. All other tables are made of it.';
COMMENT ON COLUMN fleet_event.model IS 'Of fleet_run.';
COMMENT ON COLUMN fleet_event.attempt IS 'From 1 on, whatever fleet began it.';
COMMENT ON COLUMN fleet_event.moment IS 'When it was handed out, or its end was known, UTC.';
COMMENT ON COLUMN fleet_event.ending IS 'NULL: it began.';
COMMENT ON COLUMN fleet_event.host IS 'The machine that it ran on; NULL: it began.';
COMMENT ON COLUMN fleet_event.run IS 'What became of the model, as JSON: the columns of fleet_run, rules and savings; NULL: no row.';
COMMENT ON COLUMN fleet_event.report IS 'Of fleet_run.';

CREATE VIEW fleet_last_run AS
SELECT model, run, report FROM fleet_event
WHERE run IS NOT NULL QUALIFY row_number() OVER (PARTITION BY model ORDER BY attempt DESC) = 1;
COMMENT ON VIEW fleet_last_run IS 'Of each model the last event that says what became of it.';
COMMENT ON COLUMN fleet_last_run.model IS 'Of fleet_run.';
COMMENT ON COLUMN fleet_last_run.run IS 'Of fleet_event.';
COMMENT ON COLUMN fleet_last_run.report IS 'Of fleet_run.';

CREATE VIEW fleet_run AS
SELECT unnest(from_json(run, '{"model": "VARCHAR", "model_digest": "VARCHAR", "options_digest": "VARCHAR", "version": "VARCHAR",
    "state": "VARCHAR", "reason": "VARCHAR", "attempts": "INTEGER", "host": "VARCHAR", "ended": "TIMESTAMP",
    "output": "VARCHAR", "output_digest": "VARCHAR", "costs": "VARCHAR", "basis": "VARCHAR",
    "speedup": "DOUBLE", "low": "DOUBLE", "high": "DOUBLE", "cost_before_us": "DOUBLE",
    "cost_after_us": "DOUBLE", "nodes_before": "INTEGER", "nodes_after": "INTEGER", "bytes_before": "BIGINT",
    "bytes_after": "BIGINT", "cpu_s": "DOUBLE", "wall_s": "DOUBLE", "peak_bytes": "BIGINT"}'
)), report
FROM fleet_last_run;
COMMENT ON VIEW fleet_run IS 'Models, each with its last run. A row lands when its file is complete.';
COMMENT ON COLUMN fleet_run.model IS 'Key: the path as it is below the output folder.';
COMMENT ON COLUMN fleet_run.model_digest IS 'Of the file, and of the files that its weights are in.';
COMMENT ON COLUMN fleet_run.options_digest IS 'Of the options of the run.';
COMMENT ON COLUMN fleet_run.version IS 'Of this program, and of onnxruntime.';
COMMENT ON COLUMN fleet_run.state IS
'changed: another graph was written; kept: the original was; refused: the program cannot use the model; failed: a defect of the program; lost: its process or machine ended three times.';
COMMENT ON COLUMN fleet_run.reason IS 'Why it was refused, failed or lost; interrupted: Ctrl-C ended its search, and the file is the best so far; else empty.';
COMMENT ON COLUMN fleet_run.attempts IS 'How often it was begun.';
COMMENT ON COLUMN fleet_run.host IS 'The machine that it ran on.';
COMMENT ON COLUMN fleet_run.ended IS 'When it ended, UTC.';
COMMENT ON COLUMN fleet_run.output IS 'The file that was written, below the output folder.';
COMMENT ON COLUMN fleet_run.output_digest IS 'Of that file.';
COMMENT ON COLUMN fleet_run.costs IS 'What costs are from: a profile, a table, or this kind of machine.';
COMMENT ON COLUMN fleet_run.basis IS 'measured: the gain was timed; modelled: it was not.';
COMMENT ON COLUMN fleet_run.speedup IS 'How many times as fast the result is; 1 for the original.';
COMMENT ON COLUMN fleet_run.low IS 'The lower end of the interval of 99 %, where it was timed.';
COMMENT ON COLUMN fleet_run.high IS 'Its upper end.';
COMMENT ON COLUMN fleet_run.cost_before_us IS 'The sum of the original''s kernels.';
COMMENT ON COLUMN fleet_run.cost_after_us IS 'The sum of the result''s kernels.';
COMMENT ON COLUMN fleet_run.nodes_before IS 'Nodes of the original''s file.';
COMMENT ON COLUMN fleet_run.nodes_after IS 'Nodes of the written file.';
COMMENT ON COLUMN fleet_run.bytes_before IS 'Bytes of the original''s file, with its weights.';
COMMENT ON COLUMN fleet_run.bytes_after IS 'Bytes of the written file, with its weights.';
COMMENT ON COLUMN fleet_run.cpu_s IS 'CPU seconds of the process that ran it.';
COMMENT ON COLUMN fleet_run.wall_s IS 'Seconds that passed.';
COMMENT ON COLUMN fleet_run.peak_bytes IS 'The most memory that its process has had by then.';
COMMENT ON COLUMN fleet_run.report IS 'What run --json prints, as JSON.';

CREATE VIEW fleet_rule_use AS
SELECT model, unnest(from_json(run -> '$.rules', '[{"rule": "VARCHAR", "uses": "INTEGER"}]'), recursive := true)
FROM fleet_last_run;
COMMENT ON VIEW fleet_rule_use IS 'Rules that the results need.';
COMMENT ON COLUMN fleet_rule_use.model IS 'Of fleet_run.';
COMMENT ON COLUMN fleet_rule_use.rule IS 'The rule''s name.';
COMMENT ON COLUMN fleet_rule_use.uses IS 'How many e-nodes of the result it made.';

CREATE VIEW fleet_rule_saving AS
SELECT model, unnest(from_json(run -> '$.savings', '[{"rule": "VARCHAR", "saved_us": "DOUBLE"}]'), recursive := true)
FROM fleet_last_run;
COMMENT ON VIEW fleet_rule_saving IS 'What rules are worth in a model: of fleets with --savings.';
COMMENT ON COLUMN fleet_rule_saving.model IS 'Of fleet_run.';
COMMENT ON COLUMN fleet_rule_saving.rule IS 'The rule''s name.';
COMMENT ON COLUMN fleet_rule_saving.saved_us IS
'What the result of a run without the rule costs more, in µs. Of two rules of which one suffices, each saves 0.';

CREATE VIEW fleet_attempt AS
SELECT
    model,
    attempt,
    min(moment) FILTER (WHERE ending IS NULL) AS started,
    max(moment) FILTER (WHERE ending IS NOT NULL) AS ended,
    max(ending) AS ending,
    max(host) AS host
FROM fleet_event
GROUP BY model, attempt
ORDER BY model, attempt;
COMMENT ON VIEW fleet_attempt IS 'How often each model was begun, and how that ended.';
COMMENT ON COLUMN fleet_attempt.model IS 'Of fleet_run.';
COMMENT ON COLUMN fleet_attempt.attempt IS 'From 1 on, whatever fleet began it.';
COMMENT ON COLUMN fleet_attempt.started IS 'When it was handed out, UTC.';
COMMENT ON COLUMN fleet_attempt.ended IS 'When that was known, UTC; NULL: it runs, or its fleet was killed.';
COMMENT ON COLUMN fleet_attempt.ending IS
'The state of the row; or lost: its process or machine ended; memory: that did not suffice; cancelled: by Ctrl-C.';
COMMENT ON COLUMN fleet_attempt.host IS 'The machine that it ran on; empty where nobody knows.';
