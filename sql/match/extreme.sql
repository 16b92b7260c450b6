-- The classes whose elements may be extreme: constants that are, and results of operators that keep the size of their
-- operands ($keeping: by signature, from 1 on) make of these; $hidden: e-nodes that are not shown count, too.
CREATE OR REPLACE TEMP TABLE extreme AS
WITH RECURSIVE flag AS (SELECT $keeping::BOOLEAN[] AS keeps),
spread(class) AS (
    SELECT e.class FROM enode AS e WHERE list_contains($signatures::INTEGER[], e.signature)
    UNION
    SELECT e.class
    FROM spread AS x
    JOIN enode AS e ON x.class IN (e.c0, e.c1, e.c2, e.c3, e.c4), flag
    WHERE flag.keeps[e.signature] AND ($hidden OR NOT e.filtered)
)
SELECT coalesce(list(class), []) AS classes FROM spread
