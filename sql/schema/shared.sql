-- Tables that all e-graphs of a database share
-- Operators, types, rules, costs, and how the run was asked for. A run has one e-graph, in the schema `main`; any
-- other has a schema of its own.

-- An operator with its attributes and its number of operands: an e-node applies it, to operands of any types.
CREATE TABLE symbol (
    id INTEGER NOT NULL, op VARCHAR NOT NULL, attrs VARCHAR NOT NULL, arity INTEGER NOT NULL,
    foldable BOOLEAN NOT NULL, unpacks BOOLEAN NOT NULL
);
COMMENT ON TABLE symbol IS 'Operators with their attributes, each once.';
COMMENT ON COLUMN symbol.id IS 'Key, from 1 on.';
COMMENT ON COLUMN symbol.op IS 'Operator, as in the rule language.';
COMMENT ON COLUMN symbol.attrs IS 'All attributes of the operator, as a JSON object.';
COMMENT ON COLUMN symbol.arity IS 'Number of operands.';
COMMENT ON COLUMN symbol.foldable IS
'Whether the result is known before inference once the operands are (not so for an input, for random numbers, or where quantized weights are unpacked).';
COMMENT ON COLUMN symbol.unpacks IS
'Whether it makes quantized constants large again where they are used.';

CREATE TABLE value_type (id INTEGER NOT NULL, type VARCHAR NOT NULL);
COMMENT ON TABLE value_type IS 'Types of values, each once.';
COMMENT ON COLUMN value_type.id IS 'Key, from 1 on.';
COMMENT ON COLUMN value_type.type IS
'Element type and shape, e.g. float32[64,1024]; of an operator with several results, all in parentheses.';

CREATE TABLE head (id INTEGER NOT NULL, text VARCHAR NOT NULL);
COMMENT ON TABLE head IS
'The part of an e-node that patterns of the rules compare, as one integer. It depends on the rules: symbols that no rule distinguishes have the same head.';
COMMENT ON COLUMN head.id IS 'Key, from 1 on. Head 0 has no row: no rule names the operator.';
COMMENT ON COLUMN head.text IS
'Operator, operands (_) and the attributes that some rule requires to have one value, e.g. (matmul _ _ :act none).';

-- This is the shape analysis: an e-node's type is its signature's. It is also the configuration that has a cost.
CREATE TABLE signature (
    id INTEGER NOT NULL, symbol INTEGER NOT NULL, operands INTEGER[] NOT NULL, type INTEGER NOT NULL,
    prepared INTEGER NOT NULL, head INTEGER NOT NULL
);
COMMENT ON TABLE signature IS
'A symbol on operands of given types, each once. The type of an e-node is that of its signature; the cost, too, is a signature''s.';
COMMENT ON COLUMN signature.id IS 'Key, from 1 on.';
COMMENT ON COLUMN signature.symbol IS 'Joins symbol.id.';
COMMENT ON COLUMN signature.operands IS 'Types of the operands; each joins value_type.id.';
COMMENT ON COLUMN signature.type IS 'Type of the result; joins value_type.id.';
COMMENT ON COLUMN signature.prepared IS
'The operands that kernels arrange before inference where they are constants: bit i, from 0 on, is set for operand i.';
COMMENT ON COLUMN signature.head IS 'Joins head.id; 0: none. Set by the rules of the last exploration.';

CREATE TABLE rule (
    id INTEGER NOT NULL, name VARCHAR NOT NULL, law VARCHAR NOT NULL, sources INTEGER NOT NULL,
    unsound BOOLEAN NOT NULL, file VARCHAR NOT NULL, line INTEGER NOT NULL, text VARCHAR NOT NULL,
    operands INTEGER[] NOT NULL, leaves INTEGER NOT NULL
);
COMMENT ON TABLE rule IS
'The rules of all explorations of the e-graph, one after the other: a second exploration adds its rules again.';
COMMENT ON COLUMN rule.id IS 'Key, from 1 on.';
COMMENT ON COLUMN rule.name IS 'Name, e.g. regroup-add; of a rule that stands for several, with the case in brackets.';
COMMENT ON COLUMN rule.law IS 'The law that it follows from, as its author wrote it.';
COMMENT ON COLUMN rule.sources IS 'Number of source patterns; a multi-pattern rule has 2; those of fused kernels may have more.';
COMMENT ON COLUMN rule.unsound IS 'Whether its author marked it as unsound.';
COMMENT ON COLUMN rule.file IS 'File that it was read from.';
COMMENT ON COLUMN rule.line IS 'Line of that file, from 1 on.';
COMMENT ON COLUMN rule.text IS 'The rule in the rule language.';
COMMENT ON COLUMN rule.operands IS
'Where union_log.bindings has the class of each tensor variable, in the order of the variables: positions from 1.';
COMMENT ON COLUMN rule.leaves IS 'After so many bindings follow the classes of the e-nodes that it builds.';

CREATE TABLE cost (signature INTEGER NOT NULL, cost_us DOUBLE NOT NULL, source VARCHAR NOT NULL);
COMMENT ON TABLE cost IS 'What one application of a signature costs. Replace rows to extract by costs of your own.';
COMMENT ON COLUMN cost.signature IS 'Key; joins signature.id.';
COMMENT ON COLUMN cost.cost_us IS 'Microseconds.';
COMMENT ON COLUMN cost.source IS 'Where it is from, e.g. analytic or measured.';

CREATE TABLE computed_cost (
    signature INTEGER NOT NULL, computed INTEGER NOT NULL, cost_us DOUBLE NOT NULL, source VARCHAR NOT NULL
);
COMMENT ON TABLE computed_cost IS
'The cost of an application that computes operands. Its kernel usually finds these as constants, and arranges them before inference. It stands in place of the cost of the signature.';
COMMENT ON COLUMN computed_cost.signature IS 'Joins signature.id.';
COMMENT ON COLUMN computed_cost.computed IS 'Those operands; as computed_operands.computed.';
COMMENT ON COLUMN computed_cost.cost_us IS 'Microseconds.';
COMMENT ON COLUMN computed_cost.source IS 'Where it is from, as cost.source.';

CREATE TABLE run_record (key VARCHAR NOT NULL, value VARCHAR NOT NULL);
COMMENT ON TABLE run_record IS 'How the run was asked for, so that another process can resume it.';
COMMENT ON COLUMN run_record.key IS 'Name of an option or of a fact about the inputs.';
COMMENT ON COLUMN run_record.value IS 'Value, as text or JSON.';

CREATE TABLE fused_kernel (
    mugraph VARCHAR NOT NULL, cost_us DOUBLE, dtype VARCHAR NOT NULL, operands INTEGER[][] NOT NULL,
    results INTEGER[][] NOT NULL, rules VARCHAR[] NOT NULL, graph VARCHAR NOT NULL
);
COMMENT ON TABLE fused_kernel IS 'Kernels of the model''s own, made or found with --fuse: their e-nodes have the operator fused.';
COMMENT ON COLUMN fused_kernel.mugraph IS 'Key: the attribute mugraph of its e-nodes.';
COMMENT ON COLUMN fused_kernel.cost_us IS 'Modelled microseconds; null: it costs what its operators do in one kernel.';
COMMENT ON COLUMN fused_kernel.dtype IS 'Element type.';
COMMENT ON COLUMN fused_kernel.operands IS 'The shapes of its operands.';
COMMENT ON COLUMN fused_kernel.results IS 'The shapes of its results, in the order of the tuple''s parts.';
COMMENT ON COLUMN fused_kernel.rules IS 'The rules that make its e-nodes; each joins rule.name.';
COMMENT ON COLUMN fused_kernel.graph IS 'Its μGraph, as kernels show reads it.';

CREATE TABLE fused_region (
    source VARCHAR NOT NULL, outputs VARCHAR[] NOT NULL, operators VARCHAR[] NOT NULL, fate VARCHAR NOT NULL,
    reason VARCHAR NOT NULL, operators_us DOUBLE, kernel_us DOUBLE, mugraph VARCHAR
);
COMMENT ON TABLE fused_region IS 'The parts of a model with --fuse: which got kernels, which were left out, and why.';
COMMENT ON COLUMN fused_region.source IS 'model; cheapest: the cheapest graph so far; or other: another graph of the e-graph, or an e-node that no such graph has.';
COMMENT ON COLUMN fused_region.outputs IS 'The values that the part gives, by their names there; of an e-node that no graph has its e-class.';
COMMENT ON COLUMN fused_region.operators IS 'Of its program; of a border, of what is not within.';
COMMENT ON COLUMN fused_region.fate IS 'kernel; none found; no gain: no kernel could save anything; no time; left out: no region, or none that a kernel is made of; border: what is before a region and not within.';
COMMENT ON COLUMN fused_region.reason IS 'Why there is no kernel, or no larger region; empty where there is.';
COMMENT ON COLUMN fused_region.operators_us IS 'Modelled microseconds of the model''s operators; null where that was not asked.';
COMMENT ON COLUMN fused_region.kernel_us IS 'Modelled microseconds of the kernel; null where there is none, or it costs what its operators do in one.';
COMMENT ON COLUMN fused_region.mugraph IS 'Joins fused_kernel.mugraph; null where there is none.';

CREATE TABLE body_rewrite (
    rule VARCHAR NOT NULL, node VARCHAR NOT NULL, op_type VARCHAR NOT NULL, nodes_before INTEGER NOT NULL,
    nodes_after INTEGER NOT NULL, steps VARCHAR[] NOT NULL
);
COMMENT ON TABLE body_rewrite IS 'Nodes with bodies (If, Loop, Scan) whose bodies were optimized as models of their own.';
COMMENT ON COLUMN body_rewrite.rule IS 'The rule that puts the node with the results into the e-graph; joins rule.name.';
COMMENT ON COLUMN body_rewrite.node IS 'The first value that the node gives.';
COMMENT ON COLUMN body_rewrite.op_type IS 'Its ONNX operator.';
COMMENT ON COLUMN body_rewrite.nodes_before IS 'Nodes in its bodies, with all that are in these.';
COMMENT ON COLUMN body_rewrite.nodes_after IS 'The same of the results.';
COMMENT ON COLUMN body_rewrite.steps IS 'The steps of the bodies'' own runs: which body, which rule, and what of it for what.';
