-- E-nodes whose signature says other operand types than its children have.
SELECT e.id, e.signature
FROM enode AS e
JOIN signature AS s ON s.id = e.signature
WHERE s.operands <> (
    SELECT coalesce(list(k.type ORDER BY child.place), [])
    FROM (
        SELECT unnest([e.c0, e.c1, e.c2, e.c3, e.c4]) AS id, unnest([0, 1, 2, 3, 4]) AS place
    ) AS child
    JOIN eclass AS k ON k.id = child.id
)
