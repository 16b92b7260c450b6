-- What greedy-dag chose: per class its e-node, and the cost of the union that it stands for.
SELECT egraph, class, enode, cost_us FROM dag_choice ORDER BY egraph, class
