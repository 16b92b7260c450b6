-- From each start of a cycle walk on, keeping per class reached the way whose youngest e-node is oldest.
-- Where a way leads back, that youngest e-node closes a cycle over older ones.
CREATE OR REPLACE TEMP TABLE closer AS
WITH RECURSIVE
edge AS (
    SELECT class, child, min(enode) AS enode, any_value(child_height) AS height
    FROM region GROUP BY class, child
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
SELECT DISTINCT youngest AS enode FROM way WHERE class = goal
