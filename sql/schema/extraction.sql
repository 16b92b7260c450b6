-- The extracted graph
-- The extractions, and the choice of the last one.

CREATE TABLE extraction_log (
    iteration INTEGER NOT NULL, cost_us DOUBLE NOT NULL, best_us DOUBLE NOT NULL, bound_us DOUBLE NOT NULL,
    optimal BOOLEAN NOT NULL, seconds DOUBLE NOT NULL, final BOOLEAN NOT NULL
);
COMMENT ON TABLE extraction_log IS 'The extractions, in order (rowid); the last is the final one.';
COMMENT ON COLUMN extraction_log.iteration IS 'The iteration that it follows.';
COMMENT ON COLUMN extraction_log.cost_us IS 'Microseconds of the graph that it gives.';
COMMENT ON COLUMN extraction_log.best_us IS 'Microseconds of the cheapest graph so far.';
COMMENT ON COLUMN extraction_log.bound_us IS
'No graph of the e-graph of that time costs less: microseconds; 0: unknown.';
COMMENT ON COLUMN extraction_log.optimal IS 'Whether it is proven that none is cheaper.';
COMMENT ON COLUMN extraction_log.seconds IS 'Wall-clock seconds.';
COMMENT ON COLUMN extraction_log.final IS 'Whether it is the final one.';

-- By signature and children, since ids go when e-nodes become equal.
CREATE TABLE kept_choice (
    position BIGINT NOT NULL, signature INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL
);
COMMENT ON TABLE kept_choice IS
'The cheapest choice of the extractions between iterations, so that it can be found again in the grown e-graph.';
COMMENT ON COLUMN kept_choice.position IS 'Key: children first, from 1 on.';
COMMENT ON COLUMN kept_choice.signature IS 'Signature of the e-node; joins signature.id.';
COMMENT ON COLUMN kept_choice.c0 IS 'First operand, a class as it was then; joins eclass.id, 0: there is none.';
COMMENT ON COLUMN kept_choice.c1 IS 'Second operand, as c0.';
COMMENT ON COLUMN kept_choice.c2 IS 'Third operand, as c0.';
COMMENT ON COLUMN kept_choice.c3 IS 'Fourth operand, as c0.';
COMMENT ON COLUMN kept_choice.c4 IS 'Fifth operand, as c0.';

CREATE TABLE chosen (class INTEGER NOT NULL, enode INTEGER NOT NULL);
COMMENT ON TABLE chosen IS 'The last extraction: the e-node chosen for each class that the result needs.';
COMMENT ON COLUMN chosen.class IS 'Key; joins eclass.id.';
COMMENT ON COLUMN chosen.enode IS 'Joins enode.id.';
