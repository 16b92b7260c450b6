-- Worlds
-- Sets of e-nodes of the e-graph (the universe) that a search grew one after the other; only runs with `--search` have
-- these tables. Equalities are the universe's, whichever world they were found in.

CREATE TABLE world (
    id INTEGER NOT NULL, kind VARCHAR NOT NULL, node_limit BIGINT NOT NULL, seed_us DOUBLE NOT NULL,
    best_us DOUBLE, e_nodes BIGINT NOT NULL, universe BIGINT NOT NULL, iteration INTEGER NOT NULL,
    stop_reason VARCHAR NOT NULL, seconds DOUBLE NOT NULL
);
COMMENT ON TABLE world IS 'The worlds, in the order in which they were grown.';
COMMENT ON COLUMN world.id IS 'Key, from 1 on.';
COMMENT ON COLUMN world.kind IS
'What it was grown from: original (the original graph), chosen (a cheapest graph of a world before), beside (that and the original); universe: it is all worlds together, and nothing was grown; saturation: it is the e-graph that there was before the search, by saturation or in a database that was opened; of a tree search, also of that between worlds of focus, by what: decision (the rules that were decided on), rollout (the cheapest world of any).';
COMMENT ON COLUMN world.node_limit IS 'The most e-nodes that it might have.';
COMMENT ON COLUMN world.seed_us IS 'Cost in µs of the cheapest graph that it was grown from.';
COMMENT ON COLUMN world.best_us IS 'Cost in µs of the cheapest graph that was extracted from it; NULL: none was.';
COMMENT ON COLUMN world.e_nodes IS 'E-nodes that it had when it was grown.';
COMMENT ON COLUMN world.universe IS 'E-nodes of all worlds so far, then.';
COMMENT ON COLUMN world.iteration IS 'Its last iteration; the first is behind the last of the world before; joins iteration_log.iteration.';
COMMENT ON COLUMN world.stop_reason IS 'Why it was not grown further; as meta.value of stop_reason, or closed (saturated, and multi-pattern rules would add nothing either), or extracted, for all worlds together.';
COMMENT ON COLUMN world.seconds IS 'Wall-clock seconds since the search began, when its cheapest graph was known.';

CREATE TABLE world_node (
    world INTEGER NOT NULL, enode INTEGER NOT NULL, place INTEGER NOT NULL, application INTEGER NOT NULL
);
COMMENT ON TABLE world_node IS 'Which world has which e-node, and why.';
COMMENT ON COLUMN world_node.world IS 'Joins world.id.';
COMMENT ON COLUMN world_node.enode IS 'Joins enode.id.';
COMMENT ON COLUMN world_node.place IS
'When it came into the world: from 1 on, operands before what takes them. Of e-nodes that became equal, the first.';
COMMENT ON COLUMN world_node.application IS
'The application that brought it; joins world_application.id, 0: the world was grown from it.';

CREATE TABLE world_application (
    world INTEGER NOT NULL, id INTEGER NOT NULL, place INTEGER NOT NULL, iteration INTEGER NOT NULL,
    rule INTEGER NOT NULL, instance INTEGER NOT NULL, roots INTEGER[] NOT NULL, bindings INTEGER[] NOT NULL
);
COMMENT ON TABLE world_application IS
'The applications that brought e-nodes into a world, whether these were built then or were in the universe.';
COMMENT ON COLUMN world_application.world IS 'Joins world.id.';
COMMENT ON COLUMN world_application.id IS 'Key within a world, from 1 on, in order.';
COMMENT ON COLUMN world_application.place IS
'Its sources are among the e-nodes before this place; see world_node.place.';
COMMENT ON COLUMN world_application.iteration IS 'Joins iteration_log.iteration.';
COMMENT ON COLUMN world_application.rule IS 'Joins rule.id.';
COMMENT ON COLUMN world_application.instance IS 'What the rule matched, a rule on e-nodes of given signatures; as union_log.instance.';
COMMENT ON COLUMN world_application.roots IS 'Classes of its sources, one or two; each joins eclass.id.';
COMMENT ON COLUMN world_application.bindings IS 'As union_log.bindings.';

-- By signature and children, since ids go when e-nodes become equal.
CREATE TABLE world_choice (
    world INTEGER NOT NULL, position BIGINT NOT NULL, signature INTEGER NOT NULL,
    c0 INTEGER NOT NULL, c1 INTEGER NOT NULL, c2 INTEGER NOT NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL
);
COMMENT ON TABLE world_choice IS 'The cheapest graph of each world.';
COMMENT ON COLUMN world_choice.world IS 'Joins world.id.';
COMMENT ON COLUMN world_choice.position IS 'Key within a world: children first, from 1 on.';
COMMENT ON COLUMN world_choice.signature IS 'Signature of the e-node; joins signature.id.';
COMMENT ON COLUMN world_choice.c0 IS 'First operand, a class as it was then; joins eclass.id, 0: there is none.';
COMMENT ON COLUMN world_choice.c1 IS 'Second operand, as c0.';
COMMENT ON COLUMN world_choice.c2 IS 'Third operand, as c0.';
COMMENT ON COLUMN world_choice.c3 IS 'Fourth operand, as c0.';
COMMENT ON COLUMN world_choice.c4 IS 'Fifth operand, as c0.';
