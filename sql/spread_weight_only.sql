-- A class is weight-only if one of its kept e-nodes has operands and all of them are. Run until 0 rows.
UPDATE eclass SET weight_only = true
WHERE NOT weight_only AND id IN (
    SELECT e.class
    FROM (SELECT id, class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered) AS e
    JOIN eclass AS child ON child.id = e.child
    GROUP BY e.id, e.class
    HAVING bool_and(child.weight_only)
)
