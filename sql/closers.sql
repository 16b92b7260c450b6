-- E-nodes that close a cycle over older e-nodes of the core.
CREATE OR REPLACE TEMP TABLE closer AS
WITH RECURSIVE reach(enode, class, goal) AS (
    SELECT enode, child, class FROM core
    UNION
    SELECT r.enode, core.child, r.goal
    FROM reach AS r JOIN core ON core.class = r.class
    WHERE core.enode < r.enode AND r.class <> r.goal
)
SELECT DISTINCT enode FROM reach WHERE class = goal
