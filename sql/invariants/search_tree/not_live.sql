-- A node of a tree by a rule that could not change its parent.
SELECT n.decision, n.id
FROM tree_node AS n
WHERE n.parent > 0 AND NOT EXISTS (
    SELECT 1 FROM tree_node AS p
    WHERE p.decision = n.decision AND p.id = n.parent AND list_contains(p.live, n.rule)
)
