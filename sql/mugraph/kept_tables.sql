-- The file of a search for kernels: its tables, level by level of kernels, and its findings.
CREATE TABLE variable (bit BIGINT, name VARCHAR);
COMMENT ON TABLE variable IS 'Index variables: sets of them are sums of bits.';
COMMENT ON COLUMN variable.bit IS 'What stands for it in sets.';
COMMENT ON COLUMN variable.name IS 'As in the program; with '' it counts partial results.';

CREATE TABLE abstract (op VARCHAR, name VARCHAR, size INTEGER, a INTEGER, b INTEGER, class INTEGER);
COMMENT ON TABLE abstract IS 'The saturated abstract e-graph, an e-node a row: a join with it is what prunes.';
COMMENT ON COLUMN abstract.op IS 'Operator.';
COMMENT ON COLUMN abstract.name IS 'An opaque function''s, with its parameters.';
COMMENT ON COLUMN abstract.size IS 'Elements that a sum adds, or that are under a root mean square.';
COMMENT ON COLUMN abstract.a IS 'Class of the first operand.';
COMMENT ON COLUMN abstract.b IS 'Class of the second; 0 for none.';
COMMENT ON COLUMN abstract.class IS 'Its class.';

CREATE TABLE config (
    level INTEGER, id INTEGER, job INTEGER, grid BIGINT, loop BIGINT, iterations INTEGER
);
COMMENT ON TABLE config IS 'Configurations: which variables the grid splits, which one the loop traverses.';
COMMENT ON COLUMN config.level IS 'Of kernels, from 1 on; ids are of a level.';
COMMENT ON COLUMN config.id IS 'Key within the level.';
COMMENT ON COLUMN config.job IS 'Always 0.';
COMMENT ON COLUMN config.grid IS 'Set of variables.';
COMMENT ON COLUMN config.loop IS 'Bit of a variable; 0 for no loop.';
COMMENT ON COLUMN config.iterations IS 'Of the loop, at structural sizes.';

CREATE TABLE extent (level INTEGER, config INTEGER, variable BIGINT, size INTEGER);
COMMENT ON TABLE extent IS 'Extents in tiles of the variables that the program sums over.';
COMMENT ON COLUMN extent.level IS 'As config.level.';
COMMENT ON COLUMN extent.config IS 'Joins config.id.';
COMMENT ON COLUMN extent.variable IS 'Bit of the variable.';
COMMENT ON COLUMN extent.size IS 'Elements.';

CREATE TABLE term (
    level INTEGER, id INTEGER, config INTEGER, size INTEGER, dims BIGINT, axes BIGINT, uses BIGINT, loads BIGINT,
    stage INTEGER, class INTEGER, value UBIGINT, parts INTEGER[]
);
COMMENT ON TABLE term IS 'Terms: tensors of a block. Those of a level that share config, value and stage are one e-class.';
COMMENT ON COLUMN term.level IS 'As config.level.';
COMMENT ON COLUMN term.id IS 'Key within the level.';
COMMENT ON COLUMN term.config IS 'Joins config.id.';
COMMENT ON COLUMN term.size IS 'Operators that it takes.';
COMMENT ON COLUMN term.dims IS 'Set of its variables.';
COMMENT ON COLUMN term.axes IS 'Set of the variables whose blocks it depends on.';
COMMENT ON COLUMN term.uses IS 'Bits of the program''s inputs that it depends on.';
COMMENT ON COLUMN term.loads IS 'Bits of the configuration''s operands that it depends on.';
COMMENT ON COLUMN term.stage IS '0 in the loop, 1 after it, 2 before it.';
COMMENT ON COLUMN term.class IS 'Class of its abstract expression; joins abstract.class.';
COMMENT ON COLUMN term.value IS 'Fingerprint of its value in two finite fields.';
COMMENT ON COLUMN term.parts IS 'Terms that it is computed of, and itself.';

CREATE TABLE derivation (
    level INTEGER, term INTEGER, op VARCHAR, name VARCHAR, variable BIGINT, a INTEGER, b INTEGER
);
COMMENT ON TABLE derivation IS 'All derivations of terms.';
COMMENT ON COLUMN derivation.level IS 'As config.level.';
COMMENT ON COLUMN derivation.term IS 'Joins term.id.';
COMMENT ON COLUMN derivation.op IS 'Operator, or accumulate and its kind.';
COMMENT ON COLUMN derivation.name IS 'An opaque function''s, with its parameters.';
COMMENT ON COLUMN derivation.variable IS 'Bit of what is reduced; 0 for nothing.';
COMMENT ON COLUMN derivation.a IS 'Term of the first operand.';
COMMENT ON COLUMN derivation.b IS 'Term of the second; 0 for none.';

CREATE TABLE fused_kernel (mugraph VARCHAR, cost_us DOUBLE, graph VARCHAR);
COMMENT ON TABLE fused_kernel IS 'What the search found and verified.';
COMMENT ON COLUMN fused_kernel.mugraph IS 'Key: k and the hash of its μGraph.';
COMMENT ON COLUMN fused_kernel.cost_us IS 'Modelled microseconds.';
COMMENT ON COLUMN fused_kernel.graph IS 'Its μGraph, as kernels show reads it.';

