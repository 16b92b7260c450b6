-- E-nodes that no longer wait are ready: their costs are those of the unions of their children's sets, and
-- their own. Settled classes need no e-nodes any more, and no e-node that is dearer than another of
-- its class will be chosen.
CREATE OR REPLACE TEMP TABLE dag_ready AS
WITH
old AS MATERIALIZED (
    SELECT r.* FROM dag_ready AS r
    ANTI JOIN dag_choice AS c ON c.egraph = r.egraph AND c.class = r.class
),
best AS (SELECT egraph, class, min(cost_us) AS cost_us FROM old GROUP BY egraph, class),
hopeful AS MATERIALIZED (
    SELECT k.*
    FROM dag_candidate AS k
    ANTI JOIN dag_choice AS c ON c.egraph = k.egraph AND c.class = k.class
    LEFT JOIN best ON best.egraph = k.egraph AND best.class = k.class
    WHERE best.cost_us IS NULL OR k.top.cost_us + k.cost_us <= best.cost_us
),
shared AS (
    SELECT egraph, enode, sum(cost_us) AS cost_us
    FROM (
        SELECT DISTINCT h.egraph, h.enode, m.member, m.cost_us
        FROM hopeful AS h
        JOIN greedy_edge AS e ON e.egraph = h.egraph AND e.enode = h.enode
        JOIN dag_member AS m ON m.egraph = e.egraph AND m.class = e.child
        WHERE h.arity > 1
    )
    GROUP BY egraph, enode
),
priced AS (
    SELECT h.*, greatest(coalesce(s.cost_us, 0.0), h.top.cost_us) + h.cost_us AS total
    FROM hopeful AS h LEFT JOIN shared AS s ON s.egraph = h.egraph AND s.enode = h.enode
)
SELECT * FROM old
UNION ALL
SELECT egraph, class, enode, total, CASE WHEN top.cost_us = total THEN top.rank + 1 ELSE 0 END FROM priced
