-- E-nodes whose last child was settled just now, and the dearest child of each: the one with the highest
-- (cost, rank).
CREATE OR REPLACE TEMP TABLE dag_candidate AS
SELECT n.egraph, n.class, n.enode, n.cost_us, n.arity, max({cost_us: c.cost_us, rank: c.rank}) AS top
FROM (
    SELECT DISTINCT e.egraph, e.enode
    FROM dag_choice AS c JOIN greedy_edge AS e ON e.egraph = c.egraph AND e.child = c.class
    WHERE c.wave = $wave
) AS parent
JOIN greedy_node AS n ON n.egraph = parent.egraph AND n.enode = parent.enode
JOIN greedy_edge AS e ON e.egraph = n.egraph AND e.enode = n.enode
JOIN dag_choice AS c ON c.egraph = e.egraph AND c.class = e.child
GROUP BY n.egraph, n.class, n.enode, n.cost_us, n.arity
HAVING count(*) = n.arity
