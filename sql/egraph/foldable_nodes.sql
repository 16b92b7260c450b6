-- E-nodes that can be computed before inference where their operands are known then; $foldable: by signature, from 1 on;
-- $hidden: those that are not shown, too. No table is asked: the latest signatures are written later.
WITH flag AS (SELECT $foldable::BOOLEAN[] AS is_foldable)
SELECT e.class, e.c0, e.c1, e.c2, e.c3, e.c4
FROM enode AS e, flag
WHERE flag.is_foldable[e.signature] AND ($hidden OR NOT e.filtered)
