-- A class is weight-only if one of its kept e-nodes is foldable and has only weight-only operands. Run until
-- no row changes.
UPDATE eclass SET weight_only = true
WHERE NOT weight_only AND id IN (
    SELECT e.class
    FROM kept_edge AS e
    JOIN eclass AS child ON child.id = e.child
    JOIN signature AS s ON s.id = e.signature
    JOIN symbol AS y ON y.id = s.symbol
    WHERE y.foldable
    GROUP BY e.enode, e.class
    HAVING bool_and(child.weight_only)
)
