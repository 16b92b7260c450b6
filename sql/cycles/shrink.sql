-- Of the edges that may lie on a cycle, drop those between classes that are not on one. Two classes are on one cycle
-- only where the same classes are above both, and below both: the extremes of these, and of their hashes, tell.
-- One recursion goes both ways: downwards by the classes themselves, upwards by their negatives.
DELETE FROM cycle_core
WHERE (class, child) NOT IN (
    WITH RECURSIVE
    way AS MATERIALIZED (SELECT class AS a, child AS b FROM cycle_core UNION ALL SELECT -child, -class FROM cycle_core),
    found(class, highest, lowest, most, least) USING KEY (class, max(highest), min(lowest), max(most), min(least)) AS (
        SELECT b, max(abs(a)), min(abs(a)), max(hash(abs(a))), min(hash(abs(a))) FROM way GROUP BY b
        UNION
        SELECT w.b, max(f.highest) AS highest, min(f.lowest) AS lowest, max(f.most) AS most, min(f.least) AS least
        FROM found AS f JOIN way AS w ON w.a = f.class
        LEFT JOIN recurring.found AS known ON known.class = w.b
        WHERE known.class IS NULL OR f.highest > known.highest OR f.lowest < known.lowest
            OR f.most > known.most OR f.least < known.least
        GROUP BY w.b
    ),
    component AS MATERIALIZED (
        SELECT o.class, hash(o.highest, o.lowest, o.most, o.least, u.highest, u.lowest, u.most, u.least) AS component
        FROM found AS o JOIN found AS u ON u.class = -o.class
        WHERE o.class > 0
    )
    SELECT c.class, c.child
    FROM cycle_core AS c
    JOIN component AS p ON p.class = c.class
    JOIN component AS q ON q.class = c.child AND q.component = p.component
)
