-- What greedy-dag knows between its waves.

-- The best e-nodes of classes that are not settled, among those whose children all are.
CREATE OR REPLACE TEMP TABLE dag_ready AS
SELECT egraph, class, enode, cost_us, 0 AS rank FROM greedy_node WHERE arity = 0;

-- E-nodes with children that are not settled, and what they will cost at least.
CREATE OR REPLACE TEMP TABLE dag_waiting AS
SELECT n.egraph, n.class, n.enode, n.cost_us, n.cost_us + max(b.least_us) AS least_us
FROM greedy_node AS n
JOIN greedy_edge AS e ON e.egraph = n.egraph AND e.enode = n.enode
JOIN dag_bound AS b ON b.egraph = e.egraph AND b.class = e.child
GROUP BY n.egraph, n.class, n.enode, n.cost_us, n.arity
HAVING count(*) = n.arity;
