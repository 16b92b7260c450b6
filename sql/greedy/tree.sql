-- Tree-greedy: the least tree cost of every class, and the e-node that has it. Costs fall from infinity until
-- none falls any more; each step looks only at e-nodes above a class whose cost fell.
-- Ties go by rank (0 for an e-node dearer than all of its children, else one above those that cost as much),
-- then by e-node: (cost, rank) rises from every child to its user, so that the choice has no cycle.
CREATE OR REPLACE TEMP TABLE tree_choice AS
WITH RECURSIVE
settled(egraph, class, cost_us, rank, enode) USING KEY (egraph, class) AS (
    SELECT egraph, class, best.cost_us, best.rank, best.enode
    FROM (
        SELECT egraph, class, min({cost_us: least(cost_us, $ceiling), rank: 0, enode: enode}) AS best
        FROM greedy_node WHERE arity = 0 GROUP BY egraph, class
    )
    UNION
    SELECT better.egraph, better.class, better.best.cost_us, better.best.rank, better.best.enode
    FROM (
        SELECT egraph, class, min({
            cost_us: total,
            rank: CASE WHEN top.cost_us = total THEN top.rank + 1 ELSE 0 END,
            enode: enode
        }) AS best
        FROM (
            -- Added up from the cheapest child on, as the same costs always must give the same sum.
            SELECT
                n.egraph, n.enode, n.class, max({cost_us: child_cost.cost_us, rank: child_cost.rank}) AS top,
                least(
                    sum(child_cost.cost_us ORDER BY child_cost.cost_us) + least(n.cost_us, $ceiling), $ceiling
                ) AS total
            FROM (
                SELECT DISTINCT e.egraph, e.enode
                FROM settled AS change JOIN greedy_edge AS e ON e.egraph = change.egraph AND e.child = change.class
            ) AS parent
            JOIN greedy_node AS n ON n.egraph = parent.egraph AND n.enode = parent.enode
            JOIN greedy_edge AS e ON e.egraph = n.egraph AND e.enode = n.enode
            JOIN recurring.settled AS child_cost ON child_cost.egraph = e.egraph AND child_cost.class = e.child
            GROUP BY n.egraph, n.enode, n.class, n.cost_us, n.arity
            HAVING count(*) = n.arity
        )
        GROUP BY egraph, class
    ) AS better
    LEFT JOIN recurring.settled AS old ON old.egraph = better.egraph AND old.class = better.class
    WHERE old.class IS NULL OR better.best < {cost_us: old.cost_us, rank: old.rank, enode: old.enode}
)
SELECT egraph, class, enode, cost_us, rank FROM settled
