-- Find cycles of kept e-nodes within a span of heights, and filter on each the e-node that closes it: the
-- youngest.
-- On every cycle, the e-node that leaves its lowest class breaks the height labels. First, of the e-nodes
-- that do, those from which a walk that never goes below the class left leads back to it (cycle_start).
-- Then from each of these walk on, keeping per class reached the way whose youngest e-node is oldest.
UPDATE enode SET filtered = true
WHERE id IN (
    WITH RECURSIVE
    kept AS MATERIALIZED (
        SELECT e.enode, e.class, e.child, parent.height, child.height AS child_height
        FROM kept_edge AS e
        JOIN eclass AS child ON child.id = e.child
        JOIN eclass AS parent ON parent.id = e.class
        WHERE child.height BETWEEN $low AND $high AND parent.height BETWEEN $low AND $high
    ),
    edge AS MATERIALIZED (
        SELECT class, child, min(enode) AS enode, any_value(child_height) AS height
        FROM kept GROUP BY class, child
    ),
    reach(goal, lowest, start, class) AS (
        SELECT DISTINCT class, height, child, child FROM kept WHERE child_height >= height
        UNION
        SELECT r.goal, r.lowest, r.start, edge.child
        FROM reach AS r JOIN edge ON edge.class = r.class
        WHERE edge.height >= r.lowest AND r.class <> r.goal
    ),
    cycle_start AS MATERIALIZED (
        SELECT DISTINCT kept.enode, kept.class AS goal, kept.height AS lowest, kept.child
        FROM reach JOIN kept ON kept.class = reach.goal AND kept.child = reach.start
        WHERE reach.class = reach.goal
    ),
    way(start, goal, lowest, class, youngest) USING KEY (start, class) AS (
        SELECT enode, goal, lowest, child, enode FROM cycle_start
        UNION
        SELECT
            w.start, any_value(w.goal), any_value(w.lowest), edge.child,
            min(greatest(w.youngest, edge.enode))
        FROM way AS w
        JOIN edge ON edge.class = w.class AND edge.height >= w.lowest
        LEFT JOIN recurring.way AS known ON known.start = w.start AND known.class = edge.child
        WHERE w.class <> w.goal
            AND (known.class IS NULL OR greatest(w.youngest, edge.enode) < known.youngest)
        GROUP BY w.start, edge.child
    )
    SELECT youngest FROM way WHERE class = goal
)
