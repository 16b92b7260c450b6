-- The suspects whose variable does reach the root: walk down from each variable over kept e-nodes,
-- never below the lowest root that it is suspected of.
CREATE OR REPLACE TEMP TABLE closing AS
WITH RECURSIVE
source AS (SELECT variable, min(root_height) AS lowest FROM suspect GROUP BY variable),
edge AS (
    SELECT DISTINCT e.class, child.id AS child, child.height
    FROM (SELECT class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered) AS e
    JOIN eclass AS child ON child.id = e.child
    WHERE child.height >= (SELECT min(lowest) FROM source)
),
reach(variable, lowest, class) AS (
    SELECT variable, lowest, variable FROM source
    UNION
    SELECT r.variable, r.lowest, edge.child
    FROM reach AS r JOIN edge ON edge.class = r.class
    WHERE edge.height >= r.lowest
)
SELECT suspect.variable, suspect.root
FROM suspect JOIN reach ON reach.variable = suspect.variable AND reach.class = suspect.root
