-- A node of a tree that was visited less often than its children together, or a decision with other than all of them.
SELECT p.decision, p.id, p.visits
FROM tree_node AS p JOIN tree_node AS n ON n.decision = p.decision AND n.parent = p.id
GROUP BY p.decision, p.id, p.visits
HAVING sum(n.visits) > p.visits
UNION ALL
SELECT d.decision, 0, d.rollouts
FROM tree_decision AS d JOIN tree_node AS n ON n.decision = d.decision AND n.parent = 0
GROUP BY d.decision, d.rollouts
HAVING sum(n.visits) <> d.rollouts
