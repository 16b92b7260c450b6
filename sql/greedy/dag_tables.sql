-- What greedy-dag knows between its waves.

-- The classes that are settled, with the e-node chosen for each and what its union of sets costs.
CREATE OR REPLACE TEMP TABLE dag_choice (
    egraph INTEGER NOT NULL, class INTEGER NOT NULL, enode INTEGER NOT NULL, cost_us DOUBLE NOT NULL,
    rank INTEGER NOT NULL, wave INTEGER NOT NULL
);

-- The set of a settled class: the classes that it is built from, itself included, with the costs of their
-- e-nodes. Classes that cost nothing are left out.
CREATE OR REPLACE TEMP TABLE dag_member (
    egraph INTEGER NOT NULL, class INTEGER NOT NULL, member INTEGER NOT NULL, cost_us DOUBLE NOT NULL
);

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
