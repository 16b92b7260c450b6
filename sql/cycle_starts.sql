-- On every cycle, the e-node that leaves its lowest class breaks the height labels. Of the e-nodes that
-- do, those from which a walk that never goes below the class left leads back to it.
CREATE OR REPLACE TEMP TABLE cycle_start AS
WITH RECURSIVE
step AS (SELECT DISTINCT class, child, child_height FROM region),
reach(goal, lowest, start, class) AS (
    SELECT DISTINCT class, height, child, child FROM region WHERE child_height >= height
    UNION
    SELECT r.goal, r.lowest, r.start, step.child
    FROM reach AS r JOIN step ON step.class = r.class
    WHERE step.child_height >= r.lowest AND r.class <> r.goal
)
SELECT DISTINCT region.enode, region.class AS goal, region.height AS lowest, region.child
FROM reach JOIN region ON region.class = reach.goal AND region.child = reach.start
WHERE reach.class = reach.goal
