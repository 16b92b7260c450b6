-- What a search for kernels keeps in a file: its tables, level by level of kernels, and what it found.
CREATE TABLE kept.variable (bit BIGINT, name VARCHAR);
COMMENT ON TABLE kept.variable IS 'Index variables: sets of them are sums of bits.';
COMMENT ON COLUMN kept.variable.bit IS 'What stands for it in sets.';
COMMENT ON COLUMN kept.variable.name IS 'As in the program; with '' it counts partial results.';

CREATE TABLE kept.abstract AS FROM abstract;
COMMENT ON TABLE kept.abstract IS 'The saturated abstract e-graph, an e-node a row: a join with it is what prunes.';
COMMENT ON COLUMN kept.abstract.op IS 'Operator.';
COMMENT ON COLUMN kept.abstract.name IS 'An opaque function''s, with its parameters.';
COMMENT ON COLUMN kept.abstract.size IS 'Elements that a sum adds, or that are under a root mean square.';
COMMENT ON COLUMN kept.abstract.a IS 'Class of the first operand.';
COMMENT ON COLUMN kept.abstract.b IS 'Class of the second; 0 for none.';
COMMENT ON COLUMN kept.abstract.class IS 'Its class.';

CREATE TABLE kept.config AS SELECT 0 AS level, * FROM config LIMIT 0;
COMMENT ON TABLE kept.config IS 'Configurations: which variables the grid splits, which one the loop traverses.';
COMMENT ON COLUMN kept.config.level IS 'Of kernels, from 1 on; ids are of a level.';
COMMENT ON COLUMN kept.config.id IS 'Key within the level.';
COMMENT ON COLUMN kept.config.job IS 'Always 0.';
COMMENT ON COLUMN kept.config.grid IS 'Set of variables.';
COMMENT ON COLUMN kept.config.loop IS 'Bit of a variable; 0 for no loop.';
COMMENT ON COLUMN kept.config.iterations IS 'Of the loop, at structural sizes.';

CREATE TABLE kept.extent AS SELECT 0 AS level, * FROM extent LIMIT 0;
COMMENT ON TABLE kept.extent IS 'Extents in tiles of the variables that the program sums over.';
COMMENT ON COLUMN kept.extent.level IS 'As config.level.';
COMMENT ON COLUMN kept.extent.config IS 'Joins config.id.';
COMMENT ON COLUMN kept.extent.variable IS 'Bit of the variable.';
COMMENT ON COLUMN kept.extent.size IS 'Elements.';

CREATE TABLE kept.term AS SELECT 0 AS level, * FROM term LIMIT 0;
COMMENT ON TABLE kept.term IS 'Terms: tensors of a block. Those of a level that share config, value and stage are one e-class.';
COMMENT ON COLUMN kept.term.level IS 'As config.level.';
COMMENT ON COLUMN kept.term.id IS 'Key within the level.';
COMMENT ON COLUMN kept.term.config IS 'Joins config.id.';
COMMENT ON COLUMN kept.term.size IS 'Operators that it takes.';
COMMENT ON COLUMN kept.term.dims IS 'Set of its variables.';
COMMENT ON COLUMN kept.term.axes IS 'Set of the variables whose blocks it depends on.';
COMMENT ON COLUMN kept.term.uses IS 'Bits of the program''s inputs that it depends on.';
COMMENT ON COLUMN kept.term.loads IS 'Bits of the configuration''s operands that it depends on.';
COMMENT ON COLUMN kept.term.stage IS '0 in the loop, 1 after it, 2 before it.';
COMMENT ON COLUMN kept.term.class IS 'Class of its abstract expression; joins abstract.class.';
COMMENT ON COLUMN kept.term.value IS 'Fingerprint of its value in two finite fields.';
COMMENT ON COLUMN kept.term.parts IS 'Terms that it is computed of, and itself.';

CREATE TABLE kept.derivation AS SELECT 0 AS level, * FROM derivation LIMIT 0;
COMMENT ON TABLE kept.derivation IS 'All derivations of terms.';
COMMENT ON COLUMN kept.derivation.level IS 'As config.level.';
COMMENT ON COLUMN kept.derivation.term IS 'Joins term.id.';
COMMENT ON COLUMN kept.derivation.op IS 'Operator, or accumulate and its kind.';
COMMENT ON COLUMN kept.derivation.name IS 'An opaque function''s, with its parameters.';
COMMENT ON COLUMN kept.derivation.variable IS 'Bit of what is reduced; 0 for nothing.';
COMMENT ON COLUMN kept.derivation.a IS 'Term of the first operand.';
COMMENT ON COLUMN kept.derivation.b IS 'Term of the second; 0 for none.';

CREATE TABLE kept.fused_kernel (mugraph VARCHAR, cost_us DOUBLE, graph VARCHAR);
COMMENT ON TABLE kept.fused_kernel IS 'What the search found and verified.';
COMMENT ON COLUMN kept.fused_kernel.mugraph IS 'Key: k and the hash of its μGraph.';
COMMENT ON COLUMN kept.fused_kernel.cost_us IS 'Modelled microseconds.';
COMMENT ON COLUMN kept.fused_kernel.graph IS 'Its μGraph, as kernels show reads it.';

