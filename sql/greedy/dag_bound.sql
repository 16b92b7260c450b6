-- The least that any derivation of a class costs along its dearest path: no union of sets costs less. A class
-- without a row has no acyclic derivation. Each step looks only at e-nodes above a class whose bound fell.
-- The recursion is that of tree.sql without its ties: with them, bounds take 1.3 to 1.8 times as long (BERT,
-- k_multi 2: 37 and 47 ms; NasNet-A: 43 and 79).
CREATE OR REPLACE TEMP TABLE dag_bound AS
WITH RECURSIVE
bound(egraph, class, least_us) USING KEY (egraph, class) AS (
    SELECT egraph, class, min(cost_us) FROM greedy_node WHERE arity = 0 GROUP BY egraph, class
    UNION
    SELECT better.egraph, better.class, better.least_us
    FROM (
        SELECT egraph, class, min(least_us) AS least_us
        FROM (
            SELECT n.egraph, n.enode, n.class, max(child_bound.least_us) + n.cost_us AS least_us
            FROM (
                SELECT DISTINCT e.egraph, e.enode
                FROM bound AS change JOIN greedy_edge AS e ON e.egraph = change.egraph AND e.child = change.class
            ) AS parent
            JOIN greedy_node AS n ON n.egraph = parent.egraph AND n.enode = parent.enode
            JOIN greedy_edge AS e ON e.egraph = n.egraph AND e.enode = n.enode
            JOIN recurring.bound AS child_bound ON child_bound.egraph = e.egraph AND child_bound.class = e.child
            GROUP BY n.egraph, n.enode, n.class, n.cost_us, n.arity
            HAVING count(*) = n.arity
        )
        GROUP BY egraph, class
    ) AS better
    LEFT JOIN recurring.bound AS old ON old.egraph = better.egraph AND old.class = better.class
    WHERE old.class IS NULL OR better.least_us < old.least_us
)
SELECT egraph, class, least_us FROM bound
