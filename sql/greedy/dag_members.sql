-- The sets of the classes settled last: the union of the sets of their e-node's children, and themselves.
INSERT INTO dag_member
SELECT DISTINCT c.egraph, c.class, m.member, m.cost_us
FROM dag_choice AS c
JOIN greedy_edge AS e ON e.egraph = c.egraph AND e.enode = c.enode
JOIN dag_member AS m ON m.egraph = e.egraph AND m.class = e.child
WHERE c.wave = $wave
UNION ALL
SELECT c.egraph, c.class, c.class, n.cost_us
FROM dag_choice AS c JOIN greedy_node AS n ON n.egraph = c.egraph AND n.enode = c.enode
WHERE c.wave = $wave AND n.cost_us > 0
