-- The e-nodes of some classes: operands, birth, and whether they were filtered or chosen.
SELECT
    e.class, e.id, e.signature, list_filter([e.c0, e.c1, e.c2, e.c3, e.c4], lambda c: c > 0),
    e.iteration, e.rule, e.filtered, x.enode IS NOT NULL
FROM enode AS e LEFT JOIN chosen AS x ON x.enode = e.id
WHERE e.class IN (SELECT unnest($classes::INTEGER[]))
ORDER BY e.class, x.enode IS NULL, e.filtered, e.id
