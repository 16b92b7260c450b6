-- Subgraphs
-- Sets of e-nodes of the e-graph (the universe) that a search grew one after the other; only runs with `--search` have
-- these tables. Equalities are the universe's, whichever subgraph they were found in.

CREATE TABLE subgraph (
    id INTEGER NOT NULL, kind VARCHAR NOT NULL, node_limit BIGINT NOT NULL, seed_us DOUBLE NOT NULL,
    best_us DOUBLE, e_nodes BIGINT NOT NULL, universe BIGINT NOT NULL, iteration INTEGER NOT NULL,
    stop_reason VARCHAR NOT NULL, seconds DOUBLE NOT NULL
);
COMMENT ON TABLE subgraph IS 'The subgraphs, in the order in which they were grown.';
COMMENT ON COLUMN subgraph.id IS 'Key, from 1 on.';
COMMENT ON COLUMN subgraph.kind IS
'What it was grown from: original (the original graph), chosen (a cheapest graph of a subgraph before), beside (that and the original); universe: it is all subgraphs together, and nothing was grown; saturation: it is the e-graph that there was before the search, by saturation or in a database that was opened; of a tree search, also of that between subgraphs of focus, by what: decision (the rules that were decided on), rollout (the cheapest subgraph of any).';
COMMENT ON COLUMN subgraph.node_limit IS 'The most e-nodes that it might have.';
COMMENT ON COLUMN subgraph.seed_us IS 'Cost in µs of the cheapest graph that it was grown from.';
COMMENT ON COLUMN subgraph.best_us IS 'Cost in µs of the cheapest graph that was extracted from it; NULL: none was.';
COMMENT ON COLUMN subgraph.e_nodes IS 'E-nodes that it had when it was grown.';
COMMENT ON COLUMN subgraph.universe IS 'E-nodes of all subgraphs so far, then.';
COMMENT ON COLUMN subgraph.iteration IS 'Its last iteration; the first is behind the last of the subgraph before; joins iteration_log.iteration.';
COMMENT ON COLUMN subgraph.stop_reason IS 'Why it was not grown further; as meta.value of stop_reason, or closed (saturated, and multi-pattern rules would add nothing either), or extracted, for all subgraphs together.';
COMMENT ON COLUMN subgraph.seconds IS 'Wall-clock seconds since the search began, when its cheapest graph was known.';

CREATE TABLE subgraph_node (
    subgraph INTEGER NOT NULL, enode INTEGER NOT NULL, place INTEGER NOT NULL, application INTEGER NOT NULL
);
COMMENT ON TABLE subgraph_node IS 'Which subgraph has which e-node, and why.';
COMMENT ON COLUMN subgraph_node.subgraph IS 'Joins subgraph.id.';
COMMENT ON COLUMN subgraph_node.enode IS 'Joins enode.id.';
COMMENT ON COLUMN subgraph_node.place IS
'When it came into the subgraph: from 1 on, operands before what takes them. Of e-nodes that became equal, the first.';
COMMENT ON COLUMN subgraph_node.application IS
'The application that brought it; joins subgraph_application.id, 0: the subgraph was grown from it.';

CREATE TABLE subgraph_application (
    subgraph INTEGER NOT NULL, id INTEGER NOT NULL, place INTEGER NOT NULL, iteration INTEGER NOT NULL,
    rule INTEGER NOT NULL, instance INTEGER NOT NULL, roots INTEGER[] NOT NULL, bindings INTEGER[] NOT NULL
);
COMMENT ON TABLE subgraph_application IS
'The applications that brought e-nodes into a subgraph, whether these were built then or were in the universe.';
COMMENT ON COLUMN subgraph_application.subgraph IS 'Joins subgraph.id.';
COMMENT ON COLUMN subgraph_application.id IS 'Key within a subgraph, from 1 on, in order.';
COMMENT ON COLUMN subgraph_application.place IS
'Its sources are among the e-nodes before this place; see subgraph_node.place.';
COMMENT ON COLUMN subgraph_application.iteration IS 'Joins iteration_log.iteration.';
COMMENT ON COLUMN subgraph_application.rule IS 'Joins rule.id.';
COMMENT ON COLUMN subgraph_application.instance IS 'What the rule matched, a rule on e-nodes of given signatures; as union_log.instance.';
COMMENT ON COLUMN subgraph_application.roots IS 'Classes of its sources, one or two; each joins eclass.id.';
COMMENT ON COLUMN subgraph_application.bindings IS 'As union_log.bindings.';

-- By signature and children, since ids go when e-nodes become equal.
CREATE TABLE subgraph_choice (
    subgraph INTEGER NOT NULL, position BIGINT NOT NULL, signature INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL
);
COMMENT ON TABLE subgraph_choice IS 'The cheapest graph of each subgraph.';
COMMENT ON COLUMN subgraph_choice.subgraph IS 'Joins subgraph.id.';
COMMENT ON COLUMN subgraph_choice.position IS 'Key within a subgraph: children first, from 1 on.';
COMMENT ON COLUMN subgraph_choice.signature IS 'Signature of the e-node; joins signature.id.';
COMMENT ON COLUMN subgraph_choice.c0 IS 'First operand, a class as it was then; joins eclass.id, 0: there is none.';
COMMENT ON COLUMN subgraph_choice.c1 IS 'Second operand, as c0.';
COMMENT ON COLUMN subgraph_choice.c2 IS 'Third operand, as c0.';
COMMENT ON COLUMN subgraph_choice.c3 IS 'Fourth operand, as c0.';
COMMENT ON COLUMN subgraph_choice.c4 IS 'Fifth operand, as c0.';
