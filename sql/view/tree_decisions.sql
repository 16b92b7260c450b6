-- The decisions of a tree search, each with the outcome of its rollouts: the cheapest graph of the best, and of the median.
SELECT
    d.decision, r.name, d.rollouts, d.mean_ms, d.cost_us, d.best_us, d.e_nodes, d.seconds,
    coalesce(o.least_us, d.cost_us), coalesce(o.median_us, d.cost_us), coalesce(n.nodes, 0)
FROM tree_decision AS d
JOIN rule AS r ON r.id = d.rule
LEFT JOIN (
    SELECT decision, min(list_min(costs_us)) AS least_us, median(list_min(costs_us)) AS median_us
    FROM tree_rollout GROUP BY decision
) AS o ON o.decision = d.decision
LEFT JOIN (SELECT decision, count(*) AS nodes FROM tree_node GROUP BY decision) AS n ON n.decision = d.decision
ORDER BY d.decision
