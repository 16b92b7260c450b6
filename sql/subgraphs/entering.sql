-- The e-nodes of targets that are not in the subgraph, each with the first application, and the step of it, that it is
-- a part of. All of them are in the universe by now.
CREATE OR REPLACE TEMP TABLE entering AS
SELECT enode, first.application AS application, first.step AS step
FROM (
    SELECT e.id AS enode, min({'application': a.id, 'step': t.step}) AS first
    FROM application AS a
    JOIN template AS t ON t.instance = a.instance
    JOIN enode AS e ON e.signature = t.signature AND e.c0 = coalesce(a.b[t.s0], 0)
        AND e.c1 = coalesce(a.b[t.s1], 0) AND e.c2 = coalesce(a.b[t.s2], 0)
        AND e.c3 = coalesce(a.b[t.s3], 0) AND e.c4 = coalesce(a.b[t.s4], 0)
    ANTI JOIN (SELECT enode AS id FROM subgraph_node WHERE subgraph = $subgraph) AS member ON member.id = e.id
    GROUP BY e.id
)
