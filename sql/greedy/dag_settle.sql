-- Settle every class that no e-node can make cheaper: its best e-node costs less than any that waits will, or
-- comes before all others of the e-graph. What waits has a child that is not settled yet, so it costs at least
-- what the next class of the e-graph to settle does, and its own cost.
INSERT INTO dag_choice
WITH
best AS MATERIALIZED (
    SELECT egraph, class, min({cost_us: cost_us, rank: rank, enode: enode}) AS best
    FROM dag_ready GROUP BY egraph, class
),
next AS MATERIALIZED (
    SELECT egraph, min({cost_us: best.cost_us, rank: best.rank}) AS key FROM best GROUP BY egraph
),
rival AS (
    SELECT w.egraph, w.class, min(greatest(w.least_us, w.cost_us + next.key.cost_us)) AS least_us
    FROM dag_waiting AS w JOIN next ON next.egraph = w.egraph
    GROUP BY w.egraph, w.class
)
SELECT best.egraph, best.class, best.best.enode, best.best.cost_us, best.best.rank, $wave
FROM best
JOIN next ON next.egraph = best.egraph
LEFT JOIN rival ON rival.egraph = best.egraph AND rival.class = best.class
WHERE rival.class IS NULL OR best.best.cost_us < rival.least_us
    OR (best.best.cost_us = next.key.cost_us AND best.best.rank = next.key.rank)
