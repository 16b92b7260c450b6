-- A class is weight-only if one of its kept e-nodes is foldable and has only weight-only operands. Run until
-- no row changes.
UPDATE eclass SET weight_only = true
WHERE NOT weight_only AND id IN (
    SELECT e.class
    FROM (
        SELECT id, class, signature, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered
    ) AS e
    JOIN eclass AS child ON child.id = e.child
    JOIN signature AS s ON s.id = e.signature
    JOIN symbol AS y ON y.id = s.symbol
    WHERE y.foldable
    GROUP BY e.id, e.class
    HAVING bool_and(child.weight_only)
)
