-- An application puts its roots above its variables. That closes a cycle if a root is, or is below, a
-- variable's class. Heights rule that out for almost all pairs (suspect); from the variables that are left
-- walk down over kept e-nodes, never below the lowest root that they are suspected of.
DELETE FROM application
WHERE id IN (
    WITH RECURSIVE
    pair AS MATERIALIZED (
        SELECT id, unnest(b) AS variable, root0 AS root FROM application
        UNION
        SELECT id, unnest(b), root1 FROM application WHERE root1 > 0
    ),
    suspect AS MATERIALIZED (
        SELECT DISTINCT v.id AS variable, r.id AS root, r.height AS root_height
        FROM pair JOIN eclass AS v ON v.id = pair.variable JOIN eclass AS r ON r.id = pair.root
        WHERE v.id = r.id OR v.height > r.height
    ),
    source AS MATERIALIZED (SELECT variable, min(root_height) AS lowest FROM suspect GROUP BY variable),
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
    )
    SELECT pair.id
    FROM pair
    JOIN suspect ON suspect.variable = pair.variable AND suspect.root = pair.root
    JOIN reach ON reach.variable = pair.variable AND reach.class = pair.root
)
