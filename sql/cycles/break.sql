-- Filter e-nodes that close a cycle with older ones which surely stay; how many, and of how many it was open.
-- An e-node closes a cycle with older ones if, and only if, some way over these leads from a child back to its
-- class. First those are taken whose ways cannot be in doubt; the rest is asked again, until all are decided.
WITH closing AS MATERIALIZED (
    FROM (
        WITH RECURSIVE
        core AS MATERIALIZED (
            SELECT c.enode, c.age, c.class, c.child FROM cycle_core AS c JOIN enode AS e ON e.id = c.enode
            WHERE NOT e.filtered
        ),
        -- From one class to another: the way whose youngest e-node is the oldest.
        way(source, class, age) USING KEY (source, class, min(age)) AS (
            SELECT class, child, min(age) FROM core GROUP BY class, child
            UNION
            SELECT w.source, e.child, min(greatest(w.age, e.age)) AS age
            FROM way AS w JOIN core AS e ON e.class = w.class
            LEFT JOIN recurring.way AS known ON known.source = w.source AND known.class = e.child
            WHERE w.source <> w.class AND (known.age IS NULL OR greatest(w.age, e.age) < known.age)
            GROUP BY w.source, e.child
        ),
        -- The youngest e-nodes of some cycle: only these can be filtered, all others stay.
        youngest AS MATERIALIZED (
            SELECT DISTINCT e.enode
            FROM core AS e LEFT JOIN way AS w ON w.source = e.child AND w.class = e.class
            WHERE e.class = e.child OR w.age < e.age
        ),
        sure AS MATERIALIZED (SELECT * FROM core ANTI JOIN youngest USING (enode)),
        -- From the children of a youngest one, over older e-nodes that stay: does its class come again?
        back(enode, age, home, class) AS (
            SELECT e.enode, e.age, e.class, e.child FROM core AS e SEMI JOIN youngest USING (enode)
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
