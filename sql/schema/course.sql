-- The course of the run
-- The times of its findings, and of its parts, in the process that ended it.

CREATE TABLE run_event (
    seconds DOUBLE NOT NULL, phase VARCHAR NOT NULL, iteration INTEGER NOT NULL,
    incumbent_us DOUBLE, bound_us DOUBLE
);
COMMENT ON TABLE run_event IS 'Cheaper graphs and better bounds, as extraction found them, in order (rowid).';
COMMENT ON COLUMN run_event.seconds IS 'Wall-clock seconds since the run began.';
COMMENT ON COLUMN run_event.phase IS 'The phase that it happened in: explore (between two iterations) or extract.';
COMMENT ON COLUMN run_event.iteration IS 'The last iteration of the exploration so far.';
COMMENT ON COLUMN run_event.incumbent_us IS 'Microseconds of the cheapest graph that this extraction has found; NULL: none yet.';
COMMENT ON COLUMN run_event.bound_us IS 'No graph of the e-graph costs less: microseconds; NULL: unknown.';

CREATE TABLE time_spent (
    phase VARCHAR NOT NULL, statement VARCHAR NOT NULL, runs BIGINT NOT NULL, seconds DOUBLE NOT NULL
);
COMMENT ON TABLE time_spent IS 'Where the time of exploration and extraction went.';
COMMENT ON COLUMN time_spent.phase IS 'The phase, e.g. match, apply or extract.';
COMMENT ON COLUMN time_spent.statement IS 'The SQL statement, a file of sql/ or generated; empty: all that is not SQL.';
COMMENT ON COLUMN time_spent.runs IS 'How often it ran; 0 where it is no statement.';
COMMENT ON COLUMN time_spent.seconds IS 'Wall-clock seconds.';
