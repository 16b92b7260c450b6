-- Of the suspects, the applications that would close a cycle: the root of one match is, or is below, a variable
-- of the other (no root is below its own variables: there is no cycle yet). From the variables, search down over
-- kept e-nodes, never below the lowest root that they are suspected of.
DELETE FROM application
WHERE id IN (
    WITH RECURSIVE
    side AS MATERIALIZED (
        SELECT match, any_value(leaves) AS leaves, min(lowest) AS lowest FROM suspect GROUP BY match
    ),
    variable AS MATERIALIZED (
        SELECT s.match, s.lowest, v.id
        FROM (SELECT match, lowest, unnest(leaves) AS class FROM side) AS s
        JOIN eclass AS v ON v.id = s.class
        WHERE v.height >= s.lowest
    ),
    edge AS MATERIALIZED (
        SELECT e.class, child.id AS child, child.height
        FROM kept_edge AS e JOIN eclass AS child ON child.id = e.child
        WHERE child.height >= (SELECT min(lowest) FROM variable)
    ),
    reach(variable, lowest, class) AS (
        SELECT id, min(lowest), id FROM variable GROUP BY id
        UNION
        SELECT r.variable, r.lowest, edge.child
        FROM reach AS r JOIN edge ON edge.class = r.class
        WHERE edge.height >= r.lowest
    ),
    below AS MATERIALIZED (
        SELECT DISTINCT v.match, r.class AS root
        FROM reach AS r
        SEMI JOIN (SELECT root AS class FROM suspect) AS roots USING (class)
        JOIN variable AS v ON v.id = r.variable
    )
    SELECT id FROM suspect SEMI JOIN below USING (match, root)
)
