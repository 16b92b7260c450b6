-- Of the edges that may lie on a cycle, drop those between classes that are not on one. Two classes are on one cycle
-- only where the same classes are above both, and below both: the extremes of these, and of their hashes, tell.
DELETE FROM cycle_core
WHERE (class, child) NOT IN (
    WITH RECURSIVE
    core AS MATERIALIZED (SELECT class, child FROM cycle_core),
    over(class, highest, lowest, most, least) USING KEY (class, max(highest), min(lowest), max(most), min(least)) AS (
        SELECT child, max(class), min(class), max(hash(class)), min(hash(class)) FROM core GROUP BY child
        UNION
        SELECT c.child, max(o.highest) AS highest, min(o.lowest) AS lowest, max(o.most) AS most, min(o.least) AS least
        FROM over AS o JOIN core AS c ON c.class = o.class
        LEFT JOIN recurring.over AS known ON known.class = c.child
        WHERE known.class IS NULL OR o.highest > known.highest OR o.lowest < known.lowest
            OR o.most > known.most OR o.least < known.least
        GROUP BY c.child
    ),
    under(class, highest, lowest, most, least) USING KEY (class, max(highest), min(lowest), max(most), min(least)) AS (
        SELECT class, max(child), min(child), max(hash(child)), min(hash(child)) FROM core GROUP BY class
        UNION
        SELECT c.class, max(u.highest) AS highest, min(u.lowest) AS lowest, max(u.most) AS most, min(u.least) AS least
        FROM under AS u JOIN core AS c ON c.child = u.class
        LEFT JOIN recurring.under AS known ON known.class = c.class
        WHERE known.class IS NULL OR u.highest > known.highest OR u.lowest < known.lowest
            OR u.most > known.most OR u.least < known.least
        GROUP BY c.class
    ),
    component AS MATERIALIZED (
        SELECT class, hash(o.highest, o.lowest, o.most, o.least, u.highest, u.lowest, u.most, u.least) AS component
        FROM over AS o JOIN under AS u USING (class)
    )
    SELECT c.class, c.child
    FROM core AS c
    JOIN component AS p ON p.class = c.class
    JOIN component AS q ON q.class = c.child AND q.component = p.component
)
