-- Edges of kept e-nodes within a span of heights: where the cycles are, if there are any.
CREATE OR REPLACE TEMP TABLE region AS
SELECT e.id AS enode, e.class, e.child, parent.height, child.height AS child_height
FROM (
    SELECT id, class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered
) AS e
JOIN eclass AS child ON child.id = e.child
JOIN eclass AS parent ON parent.id = e.class
WHERE child.height BETWEEN $low AND $high AND parent.height BETWEEN $low AND $high
