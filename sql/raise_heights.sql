-- Lift every class above its children again, from the violating e-nodes upwards (round a cycle it would go on
-- for ever).
UPDATE eclass SET height = lifted.height
FROM (
    WITH RECURSIVE
    edge AS MATERIALIZED (
        SELECT DISTINCT e.class, e.child, parent.height
        FROM kept_edge AS e JOIN eclass AS parent ON parent.id = e.class
    ),
    lift(class, height) AS (
        SELECT edge.class, 1 + max(child.height)
        FROM edge JOIN eclass AS child ON child.id = edge.child
        WHERE child.height >= edge.height
        GROUP BY edge.class
        UNION ALL
        SELECT edge.class, 1 + max(lift.height)
        FROM lift JOIN edge ON edge.child = lift.class
        WHERE lift.height >= edge.height
        GROUP BY edge.class
    )
    SELECT class, max(height) AS height FROM lift GROUP BY class
) AS lifted
WHERE eclass.id = lifted.class
