-- Kernels
-- The rows of searches that kernels came from: the column fused_kernel.graph is made of them.

CREATE VIEW kernel_term AS
SELECT k.mugraph, r.*
FROM fused_kernel AS k,
    unnest(from_json(
        k.graph::JSON -> '$.rows',
        '[{"kernel": "VARCHAR", "tensor": "VARCHAR", "level": "INTEGER", "config": "INTEGER", "term": "INTEGER",
          "operators": "INTEGER", "stage": "VARCHAR", "op": "VARCHAR", "function": "VARCHAR", "variable": "VARCHAR",
          "a": "INTEGER", "b": "INTEGER", "abstract_class": "INTEGER", "fingerprint": "UBIGINT",
          "derivations": "INTEGER"}]'
    )) AS u (r);
COMMENT ON VIEW kernel_term IS 'The rows of the search that a kernel of fused_kernel came from: terms, each with the derivation that was chosen. Those that were not searched have none.';
COMMENT ON COLUMN kernel_term.mugraph IS 'Joins fused_kernel.mugraph.';
COMMENT ON COLUMN kernel_term.kernel IS 'Kernel of the μGraph: k1, k2, ….';
COMMENT ON COLUMN kernel_term.tensor IS 'What its block calls the term.';
COMMENT ON COLUMN kernel_term.level IS 'Of kernels: 1 for those that load inputs.';
COMMENT ON COLUMN kernel_term.config IS 'The search''s number of the configuration: which variables the grid splits, and which one the loop traverses.';
COMMENT ON COLUMN kernel_term.term IS 'The search''s number of the term, the first of its e-class in that configuration.';
COMMENT ON COLUMN kernel_term.operators IS 'How many operators it takes to compute.';
COMMENT ON COLUMN kernel_term.stage IS 'before, loop or after.';
COMMENT ON COLUMN kernel_term.op IS 'load, or the operator of the derivation; of accumulators their kind, too.';
COMMENT ON COLUMN kernel_term.function IS 'Of an opaque function, with its parameters; else empty.';
COMMENT ON COLUMN kernel_term.variable IS 'What is reduced; empty for nothing.';
COMMENT ON COLUMN kernel_term.a IS 'Term of the first operand; 0 for none.';
COMMENT ON COLUMN kernel_term.b IS 'Term of the second operand; 0 for none.';
COMMENT ON COLUMN kernel_term.abstract_class IS 'Class of its abstract expression in the e-graph that prunes.';
COMMENT ON COLUMN kernel_term.fingerprint IS 'Of its value in two finite fields: terms of a configuration that share it are equal.';
COMMENT ON COLUMN kernel_term.derivations IS 'How many derivations its e-class has.';
