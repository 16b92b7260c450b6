-- The edges among which cycles are searched for, e-nodes in the order of their ages.
SELECT age AS enode, class, child, height, child_height FROM cycle_core ORDER BY age, child
