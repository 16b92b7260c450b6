-- The least that any derivation of a class costs along its dearest path: no union of sets costs less. A class
-- without a row has no acyclic derivation. Each step looks only at e-nodes above a class whose bound fell.
CREATE OR REPLACE TEMP TABLE dag_bound AS
WITH RECURSIVE
bound(egraph, class, least_us) USING KEY (egraph, class) AS (
    SELECT egraph, class, min(cost_us) FROM greedy_node WHERE arity = 0 GROUP BY egraph, class
    UNION
    SELECT lower.egraph, lower.class, lower.least_us
    FROM (
        SELECT egraph, class, min(least_us) AS least_us
        FROM (
            SELECT n.egraph, n.enode, n.class, max(known.least_us) + n.cost_us AS least_us
            FROM (
                SELECT DISTINCT e.egraph, e.enode
                FROM bound AS fell JOIN greedy_edge AS e ON e.egraph = fell.egraph AND e.child = fell.class
            ) AS touched
            JOIN greedy_node AS n ON n.egraph = touched.egraph AND n.enode = touched.enode
            JOIN greedy_edge AS e ON e.egraph = n.egraph AND e.enode = n.enode
            JOIN recurring.bound AS known ON known.egraph = e.egraph AND known.class = e.child
            GROUP BY n.egraph, n.enode, n.class, n.cost_us, n.arity
            HAVING count(*) = n.arity
        )
        GROUP BY egraph, class
    ) AS lower
    LEFT JOIN recurring.bound AS old ON old.egraph = lower.egraph AND old.class = lower.class
    WHERE old.class IS NULL OR lower.least_us < old.least_us
)
SELECT egraph, class, least_us FROM bound
