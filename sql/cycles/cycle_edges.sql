-- The kept edges between classes where cycles can be, and labels may have to rise: of the edges that are not
-- above their child, from the lowest class to so much above the highest child. None where all are above.
WITH
edge AS MATERIALIZED (
    SELECT e.enode, e.class, e.child, parent.height, child.height AS child_height
    FROM kept_edge AS e
    JOIN eclass AS child ON child.id = e.child
    JOIN eclass AS parent ON parent.id = e.class
),
span AS MATERIALIZED (
    SELECT min(height) AS low, max(child_height) + $above AS high FROM edge WHERE child_height >= height
)
SELECT edge.*
FROM edge JOIN span ON edge.child_height BETWEEN low AND high AND edge.height BETWEEN low AND high
