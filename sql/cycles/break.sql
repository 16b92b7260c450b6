-- Filter e-nodes that close a cycle with older ones which surely stay; how many, and of how many it was open.
-- An e-node closes a cycle with older ones if, and only if, some way over these leads from a child back to its
-- class. First those are taken whose ways cannot be in doubt; what is left is asked again, until all are decided.
WITH closing AS MATERIALIZED (
    FROM (
        WITH RECURSIVE
        core AS MATERIALIZED (
            SELECT c.enode, c.age, c.class, c.child FROM cycle_core AS c JOIN enode AS e ON e.id = c.enode
            WHERE NOT e.filtered
        ),
        -- Two classes are on one cycle only where the same classes are above both, and below both: hashes of the
        -- sets of these, by their extremes.
        over(class, highest, lowest, most, least) USING KEY (class, max(highest), min(lowest), max(most), min(least)) AS (
            SELECT child, max(class), min(class), max(hash(class)), min(hash(class)) FROM core GROUP BY child
            UNION
            SELECT
                c.child, max(o.highest) AS highest, min(o.lowest) AS lowest, max(o.most) AS most, min(o.least) AS least
            FROM over AS o JOIN core AS c ON c.class = o.class
            LEFT JOIN recurring.over AS known ON known.class = c.child
            WHERE known.class IS NULL OR o.highest > known.highest OR o.lowest < known.lowest
                OR o.most > known.most OR o.least < known.least
            GROUP BY c.child
        ),
        under(class, highest, lowest, most, least) USING KEY (class, max(highest), min(lowest), max(most), min(least)) AS (
            SELECT class, max(child), min(child), max(hash(child)), min(hash(child)) FROM core GROUP BY class
            UNION
            SELECT
                c.class, max(u.highest) AS highest, min(u.lowest) AS lowest, max(u.most) AS most, min(u.least) AS least
            FROM under AS u JOIN core AS c ON c.child = u.class
            LEFT JOIN recurring.under AS known ON known.class = c.class
            WHERE known.class IS NULL OR u.highest > known.highest OR u.lowest < known.lowest
                OR u.most > known.most OR u.least < known.least
            GROUP BY c.class
        ),
        component AS MATERIALIZED (
            SELECT class, hash(o.highest, o.lowest, o.most, o.least, u.highest, u.lowest, u.most, u.least) AS component
            FROM over AS o JOIN under AS u USING (class)
        ),
        inner_edge AS MATERIALIZED (
            SELECT c.*
            FROM core AS c
            JOIN component AS p ON p.class = c.class
            JOIN component AS q ON q.class = c.child AND q.component = p.component
        ),
        -- From one class to another: the way whose youngest e-node is the oldest.
        way(source, class, age) USING KEY (source, class, min(age)) AS (
            SELECT class, child, min(age) FROM inner_edge GROUP BY class, child
            UNION
            SELECT w.source, e.child, min(greatest(w.age, e.age)) AS age
            FROM way AS w JOIN inner_edge AS e ON e.class = w.class
            LEFT JOIN recurring.way AS known ON known.source = w.source AND known.class = e.child
            WHERE w.source <> w.class AND (known.age IS NULL OR greatest(w.age, e.age) < known.age)
            GROUP BY w.source, e.child
        ),
        -- The youngest e-nodes of some cycle: only these can be filtered, all others stay.
        youngest AS MATERIALIZED (
            SELECT DISTINCT e.enode
            FROM inner_edge AS e LEFT JOIN way AS w ON w.source = e.child AND w.class = e.class
            WHERE e.class = e.child OR w.age < e.age
        ),
        sure AS MATERIALIZED (SELECT * FROM inner_edge ANTI JOIN youngest USING (enode)),
        -- From the children of a youngest one, over older e-nodes that stay: does its class come again?
        back(enode, age, home, class) AS (
            SELECT e.enode, e.age, e.class, e.child FROM inner_edge AS e SEMI JOIN youngest USING (enode)
            UNION
            SELECT b.enode, b.age, b.home, s.child
            FROM back AS b JOIN sure AS s ON s.class = b.class
            WHERE s.age < b.age AND b.class <> b.home
        )
        SELECT DISTINCT enode, (SELECT count(*) FROM youngest) AS open FROM back WHERE class = home
    )
),
filtered AS (
    UPDATE enode SET filtered = true FROM closing WHERE closing.enode = enode.id RETURNING enode.id
)
SELECT (SELECT count(*) FROM filtered), coalesce(max(open), 0) FROM closing
