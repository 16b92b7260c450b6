-- The decisions of a tree search, with the names of their rules.
SELECT d.decision, d.rule, r.name, d.rollouts, d.mean_ms, d.cost_us, d.best_us, d.e_nodes, d.universe, d.seconds
FROM tree_decision AS d JOIN rule AS r ON r.id = d.rule ORDER BY d.decision
