-- Classes for a page that cannot hold all: those of the original and of the result first, then those near them.
WITH core AS (
    SELECT class FROM chosen
    UNION SELECT c.parent FROM original_node AS o JOIN eclass AS c ON c.id = o.enode
),
near AS (
    SELECT e.child AS class FROM kept_edge AS e SEMI JOIN core ON core.class = e.class
    UNION SELECT e.class FROM kept_edge AS e SEMI JOIN core ON core.class = e.child
),
ranked AS (
    SELECT c.id, CASE WHEN core.class IS NOT NULL THEN 0 WHEN near.class IS NOT NULL THEN 1 ELSE 2 END AS distance
    FROM eclass AS c LEFT JOIN core ON core.class = c.id LEFT JOIN near ON near.class = c.id
    WHERE c.parent = c.id
),
sized AS (
    SELECT r.id, r.distance, count(e.id) AS e_nodes FROM ranked AS r JOIN enode AS e ON e.class = r.id GROUP BY ALL
)
SELECT id FROM sized
QUALIFY sum(e_nodes) OVER (ORDER BY distance, id ROWS UNBOUNDED PRECEDING) <= $most
ORDER BY id
