-- What was applied to the real world.
SELECT rule, applications FROM tree_decision ORDER BY decision
