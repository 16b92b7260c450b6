-- Peel classes all of whose children are peeled (Kahn); what cannot be peeled is on or above a cycle.
CREATE OR REPLACE TEMP TABLE core AS
WITH RECURSIVE
edge AS (SELECT DISTINCT class, child FROM region),
peel(class, remaining) USING KEY (class) AS (
    SELECT k.class, count(edge.child)
    FROM (SELECT class FROM region UNION SELECT child FROM region) AS k
    LEFT JOIN edge ON edge.class = k.class
    GROUP BY k.class
    UNION
    SELECT above.class, any_value(above.remaining) - count(*)
    FROM peel AS done
    JOIN edge ON edge.child = done.class
    JOIN recurring.peel AS above ON above.class = edge.class
    WHERE done.remaining = 0
    GROUP BY above.class
)
SELECT r.enode, r.class, r.child
FROM region AS r
JOIN peel AS parent ON parent.class = r.class
JOIN peel AS child ON child.class = r.child
WHERE parent.remaining > 0 AND child.remaining > 0
