-- Lift every class above its children again, from the violating e-nodes upwards, in at most so many steps
-- (round a cycle it would go on for ever).
UPDATE eclass SET height = lifted.height
FROM (
    WITH RECURSIVE
    edge AS MATERIALIZED (
        SELECT DISTINCT e.class, e.child, parent.height
        FROM kept_edge AS e JOIN eclass AS parent ON parent.id = e.class
    ),
    lift(class, height, step) AS (
        SELECT edge.class, 1 + max(child.height), 1
        FROM edge JOIN eclass AS child ON child.id = edge.child
        WHERE child.height >= edge.height
        GROUP BY edge.class
        UNION ALL
        SELECT edge.class, 1 + max(lift.height), any_value(lift.step) + 1
        FROM lift JOIN edge ON edge.child = lift.class
        WHERE lift.height >= edge.height AND lift.step < $steps
        GROUP BY edge.class
    )
    SELECT class, max(height) AS height FROM lift GROUP BY class
) AS lifted
WHERE eclass.id = lifted.class
