-- What _cycle_edges in egraph/cycles.py does, for the e-nodes of a world, of which the age is the place.
WITH
edge AS MATERIALIZED (
    SELECT m.place AS enode, e.class, e.child, parent.height, child.height AS child_height
    FROM kept_edge AS e
    JOIN (SELECT enode, place FROM world_node WHERE world = $world) AS m ON m.enode = e.enode
    JOIN eclass AS child ON child.id = e.child
    JOIN eclass AS parent ON parent.id = e.class
),
span AS MATERIALIZED (
    SELECT min(height) AS low, max(child_height) + $above AS high FROM edge WHERE child_height >= height
)
SELECT edge.*
FROM edge JOIN span ON edge.child_height BETWEEN low AND high AND edge.height BETWEEN low AND high
