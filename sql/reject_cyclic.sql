-- An application puts its roots above its variables. That closes a cycle if the root of one match is, or is
-- below, a variable of the other (no root is below its own variables: there is no cycle yet). Heights rule that
-- out for most pairs of matches; from the variables of the others walk down over kept e-nodes, never below the
-- lowest root that they are suspected of. The first so many bindings of an application are the first match's.
DELETE FROM application
WHERE id IN (
    WITH RECURSIVE
    side AS MATERIALIZED (
        SELECT m0 AS match, any_value(root0) AS root, any_value(b)[:$leaves] AS leaves
        FROM application GROUP BY m0
        UNION ALL
        SELECT m1, any_value(root1), any_value(b)[$leaves + 1:] FROM application GROUP BY m1
    ),
    variable AS MATERIALIZED (
        SELECT DISTINCT leaf.match, v.id, v.height
        FROM (SELECT match, unnest(leaves) AS class FROM side) AS leaf JOIN eclass AS v ON v.id = leaf.class
    ),
    span AS MATERIALIZED (
        SELECT side.match, any_value(r.height) AS root_height, max(v.height) AS top
        FROM side JOIN eclass AS r ON r.id = side.root JOIN variable AS v ON v.match = side.match
        GROUP BY side.match
    ),
    suspect AS MATERIALIZED (
        SELECT
            a.id, a.m0, a.m1, a.root0, a.root1, first.root_height AS height0, second.root_height AS height1,
            first.top >= second.root_height AS is_first, second.top >= first.root_height AS is_second
        FROM application AS a
        JOIN span AS first ON first.match = a.m0
        JOIN span AS second ON second.match = a.m1
        WHERE first.top >= second.root_height OR second.top >= first.root_height
    ),
    source AS MATERIALIZED (
        SELECT v.id AS variable, min(s.lowest) AS lowest
        FROM (
            SELECT m0 AS match, min(height1) AS lowest FROM suspect WHERE is_first GROUP BY m0
            UNION ALL
            SELECT m1, min(height0) FROM suspect WHERE is_second GROUP BY m1
        ) AS s
        JOIN variable AS v ON v.match = s.match
        WHERE v.height >= s.lowest
        GROUP BY v.id
    ),
    edge AS MATERIALIZED (
        SELECT DISTINCT e.class, child.id AS child, child.height
        FROM kept_edge AS e JOIN eclass AS child ON child.id = e.child
        WHERE child.height >= (SELECT min(lowest) FROM source)
    ),
    reach(variable, lowest, class) AS (
        SELECT variable, lowest, variable FROM source
        UNION
        SELECT r.variable, r.lowest, edge.child
        FROM reach AS r JOIN edge ON edge.class = r.class
        WHERE edge.height >= r.lowest
    ),
    below AS MATERIALIZED (
        SELECT DISTINCT v.match, reach.class AS root
        FROM (SELECT DISTINCT root FROM side) AS roots
        JOIN reach ON reach.class = roots.root
        JOIN variable AS v ON v.id = reach.variable
    )
    SELECT id FROM suspect SEMI JOIN below ON below.match = suspect.m0 AND below.root = suspect.root1
    UNION ALL
    SELECT id FROM suspect SEMI JOIN below ON below.match = suspect.m1 AND below.root = suspect.root0
)
