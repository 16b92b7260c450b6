-- What canonicalize does, for e-graphs of so many classes that a list of them all no longer fits into the
-- processor's cache, or several threads, which no list has its order from: joins with the few that moved.
UPDATE enode
SET class = t.class, c0 = t.c0, c1 = t.c1, c2 = t.c2, c3 = t.c3, c4 = t.c4, stamp = $stamp
FROM (
    SELECT
        e.id, coalesce(m.new, e.class) AS class,
        coalesce(m0.new, e.c0) AS c0, coalesce(m1.new, e.c1) AS c1, coalesce(m2.new, e.c2) AS c2,
        coalesce(m3.new, e.c3) AS c3, coalesce(m4.new, e.c4) AS c4
    FROM enode AS e
    LEFT JOIN moved AS m ON m.old = e.class
    LEFT JOIN moved AS m0 ON m0.old = e.c0
    LEFT JOIN moved AS m1 ON m1.old = e.c1
    LEFT JOIN moved AS m2 ON m2.old = e.c2
    LEFT JOIN moved AS m3 ON m3.old = e.c3
    LEFT JOIN moved AS m4 ON m4.old = e.c4
    WHERE m.old IS NOT NULL OR m0.old IS NOT NULL OR m1.old IS NOT NULL
        OR m2.old IS NOT NULL OR m3.old IS NOT NULL OR m4.old IS NOT NULL
) AS t
WHERE enode.id = t.id
