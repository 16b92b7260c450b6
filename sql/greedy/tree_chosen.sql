-- What tree-greedy chose: per class its e-node and tree cost.
SELECT egraph, class, enode, cost_us FROM tree_choice ORDER BY egraph, class
