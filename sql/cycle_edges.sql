-- The kept edges between classes within a span of heights: neither cycles nor, in the end, labels that must rise
-- are elsewhere.
SELECT e.enode, e.class, e.child, parent.height, child.height AS child_height
FROM kept_edge AS e
JOIN eclass AS child ON child.id = e.child
JOIN eclass AS parent ON parent.id = e.class
WHERE child.height BETWEEN $low AND $high AND parent.height BETWEEN $low AND $high
