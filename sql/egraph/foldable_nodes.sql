-- E-nodes that can be computed before inference where their operands are known then; $hidden: those that are not
-- shown, too.
SELECT e.class, e.c0, e.c1, e.c2, e.c3, e.c4
FROM enode AS e JOIN signature AS s ON s.id = e.signature JOIN symbol AS y ON y.id = s.symbol
WHERE y.foldable AND ($hidden OR NOT e.filtered)
