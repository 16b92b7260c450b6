-- Find cycles among the edges of the region that no closer found so far has cut, and on each the e-node
-- that closes it: the youngest.
-- On every cycle, the e-node that leaves its lowest class breaks the height labels. First, of the e-nodes
-- that do, those from which a walk that never goes below the class left leads back to it (start). Then
-- from each of these walk on, keeping per class reached the way whose youngest e-node is oldest.
INSERT INTO closer
WITH RECURSIVE
open AS MATERIALIZED (
    SELECT * FROM region WHERE NOT EXISTS (SELECT 1 FROM closer WHERE closer.enode = region.enode)
),
edge AS MATERIALIZED (
    SELECT class, child, min(enode) AS enode, any_value(child_height) AS height
    FROM open GROUP BY class, child
),
reach(goal, lowest, start, class) AS (
    SELECT DISTINCT class, height, child, child FROM open WHERE child_height >= height
    UNION
    SELECT r.goal, r.lowest, r.start, edge.child
    FROM reach AS r JOIN edge ON edge.class = r.class
    WHERE edge.height >= r.lowest AND r.class <> r.goal
),
cycle_start AS MATERIALIZED (
    SELECT DISTINCT open.enode, open.class AS goal, open.height AS lowest, open.child
    FROM reach JOIN open ON open.class = reach.goal AND open.child = reach.start
    WHERE reach.class = reach.goal
),
way(start, goal, lowest, class, youngest) USING KEY (start, class) AS (
    SELECT enode, goal, lowest, child, enode FROM cycle_start
    UNION
    SELECT w.start, any_value(w.goal), any_value(w.lowest), edge.child, min(greatest(w.youngest, edge.enode))
    FROM way AS w
    JOIN edge ON edge.class = w.class AND edge.height >= w.lowest
    LEFT JOIN recurring.way AS known ON known.start = w.start AND known.class = edge.child
    WHERE w.class <> w.goal AND (known.class IS NULL OR greatest(w.youngest, edge.enode) < known.youngest)
    GROUP BY w.start, edge.child
)
SELECT DISTINCT youngest FROM way WHERE class = goal
