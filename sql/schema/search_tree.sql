-- The search tree
-- The findings of a tree search about which rules to apply. Only runs with `--search mcts` or `--search focus-mcts` have
-- these tables.

CREATE TABLE tree_decision (
    decision INTEGER NOT NULL, rule INTEGER NOT NULL, rollouts INTEGER NOT NULL, mean_ms DOUBLE NOT NULL,
    cost_us DOUBLE NOT NULL, best_us DOUBLE NOT NULL, e_nodes BIGINT NOT NULL, universe BIGINT NOT NULL,
    live INTEGER[] NOT NULL, applications INTEGER[] NOT NULL, seconds DOUBLE NOT NULL
);
COMMENT ON TABLE tree_decision IS 'The decisions: after the rollouts of a tree, one rule was applied to the real subgraph.';
COMMENT ON COLUMN tree_decision.decision IS 'Key, from 1 on, or from the iteration after focus on; joins iteration_log.iteration.';
COMMENT ON COLUMN tree_decision.rule IS 'The rule of the best mean; joins rule.id.';
COMMENT ON COLUMN tree_decision.rollouts IS 'Rollouts of the tree.';
COMMENT ON COLUMN tree_decision.mean_ms IS 'Mean return of the rollouts through that rule, in ms.';
COMMENT ON COLUMN tree_decision.cost_us IS 'Cost in µs of the real subgraph''s cheapest graph by moves, after the decision; an extraction may find a cheaper one.';
COMMENT ON COLUMN tree_decision.best_us IS 'The same of the cheapest subgraph of any rollout so far.';
COMMENT ON COLUMN tree_decision.e_nodes IS 'E-nodes of the real subgraph after the decision.';
COMMENT ON COLUMN tree_decision.universe IS 'E-nodes of all subgraphs so far, then.';
COMMENT ON COLUMN tree_decision.live IS 'The rules that could change the real subgraph before the decision; each joins rule.id.';
COMMENT ON COLUMN tree_decision.applications IS 'Those that the rule then was in the real subgraph, in order; each joins universe_application.id.';
COMMENT ON COLUMN tree_decision.seconds IS 'Wall-clock seconds since the search began, after the decision.';

CREATE TABLE tree_node (
    decision INTEGER NOT NULL, id INTEGER NOT NULL, parent INTEGER NOT NULL, rule INTEGER NOT NULL,
    visits INTEGER NOT NULL, value_ms DOUBLE NOT NULL, reward_ms DOUBLE NOT NULL, cost_us DOUBLE NOT NULL,
    e_nodes BIGINT NOT NULL, live INTEGER[] NOT NULL, state VARCHAR NOT NULL
);
COMMENT ON TABLE tree_node IS 'The nodes of the tree of each decision, but for its root, the real subgraph. Each is a subgraph, by one rule from its parent. The last tree may have come to no decision: a limit or Ctrl-C ended it.';
COMMENT ON COLUMN tree_node.decision IS 'Joins tree_decision.decision.';
COMMENT ON COLUMN tree_node.id IS 'Key within a decision, from 1 on.';
COMMENT ON COLUMN tree_node.parent IS 'Joins tree_node.id of the same decision, 0: the root.';
COMMENT ON COLUMN tree_node.rule IS 'The rule that was applied to all its matches in the parent''s subgraph; joins rule.id.';
COMMENT ON COLUMN tree_node.visits IS 'Rollouts through it.';
COMMENT ON COLUMN tree_node.value_ms IS 'Sum of their returns in ms.';
COMMENT ON COLUMN tree_node.reward_ms IS 'What its rule saved of the cost of the cheapest graph, in ms.';
COMMENT ON COLUMN tree_node.cost_us IS 'Cost in µs of its cheapest graph by moves.';
COMMENT ON COLUMN tree_node.e_nodes IS 'E-nodes of its subgraph.';
COMMENT ON COLUMN tree_node.live IS 'The rules that could change it; each joins rule.id.';
COMMENT ON COLUMN tree_node.state IS
'open; saturated (its rule changed nothing); full (its limit of e-nodes left something out: nothing follows).';

CREATE TABLE tree_rollout (
    decision INTEGER NOT NULL, node INTEGER NOT NULL, rules INTEGER[] NOT NULL, costs_us DOUBLE[] NOT NULL,
    e_nodes BIGINT NOT NULL, return_ms DOUBLE NOT NULL
);
COMMENT ON TABLE tree_rollout IS 'The rollouts: each begins a node of the tree, and simulates on from there.';
COMMENT ON COLUMN tree_rollout.decision IS 'Joins tree_decision.decision.';
COMMENT ON COLUMN tree_rollout.node IS 'The node that it began; joins tree_node.id of the same decision.';
COMMENT ON COLUMN tree_rollout.rules IS 'The rules that were applied, the node''s own first; each joins rule.id.';
COMMENT ON COLUMN tree_rollout.costs_us IS 'Cost in µs of the cheapest graph by moves: of the parent''s subgraph, then after each rule.';
COMMENT ON COLUMN tree_rollout.e_nodes IS 'E-nodes of its subgraph in the end.';
COMMENT ON COLUMN tree_rollout.return_ms IS 'Its discounted rewards, in ms.';
