-- The ledger of a fleet: what became of each model. One process writes it.
CREATE TABLE IF NOT EXISTS fleet_run (
    model VARCHAR PRIMARY KEY, model_digest VARCHAR NOT NULL, options_digest VARCHAR NOT NULL, version VARCHAR NOT NULL,
    state VARCHAR NOT NULL, reason VARCHAR NOT NULL, attempts INTEGER NOT NULL, host VARCHAR NOT NULL,
    ended TIMESTAMP NOT NULL, output VARCHAR, output_digest VARCHAR, basis VARCHAR, speedup DOUBLE, low DOUBLE,
    high DOUBLE, cost_before_us DOUBLE, cost_after_us DOUBLE, nodes_before INTEGER, nodes_after INTEGER,
    bytes_before BIGINT, bytes_after BIGINT, cpu_s DOUBLE NOT NULL, wall_s DOUBLE NOT NULL, peak_bytes BIGINT NOT NULL,
    report VARCHAR
);
COMMENT ON TABLE fleet_run IS 'Models, each with its last run. A row lands when its file is complete.';
COMMENT ON COLUMN fleet_run.model IS 'Key: the path as it is below the output folder.';
COMMENT ON COLUMN fleet_run.model_digest IS 'Of the file, and of the files that its weights are in.';
COMMENT ON COLUMN fleet_run.options_digest IS 'Of the options of the run.';
COMMENT ON COLUMN fleet_run.version IS 'Of this program, and of onnxruntime.';
COMMENT ON COLUMN fleet_run.state IS
'changed: another graph was written; kept: the original was; refused: the program cannot use the model; lost: its process ended three times.';
COMMENT ON COLUMN fleet_run.reason IS 'Why it was refused or lost; else empty.';
COMMENT ON COLUMN fleet_run.attempts IS 'How often it was begun.';
COMMENT ON COLUMN fleet_run.host IS 'The machine that it ran on.';
COMMENT ON COLUMN fleet_run.ended IS 'When it ended, UTC.';
COMMENT ON COLUMN fleet_run.output IS 'The file that was written, below the output folder.';
COMMENT ON COLUMN fleet_run.output_digest IS 'Of that file.';
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

CREATE TABLE IF NOT EXISTS fleet_rule_use (model VARCHAR NOT NULL, rule VARCHAR NOT NULL, uses INTEGER NOT NULL);
COMMENT ON TABLE fleet_rule_use IS 'Rules that the results need.';
COMMENT ON COLUMN fleet_rule_use.model IS 'Of fleet_run.';
COMMENT ON COLUMN fleet_rule_use.rule IS 'The rule''s name.';
COMMENT ON COLUMN fleet_rule_use.uses IS 'How many e-nodes of the result it made.';
