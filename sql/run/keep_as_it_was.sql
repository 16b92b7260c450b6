-- Of what some values of the original graph are computed from, only its own e-nodes are extracted any more.
WITH RECURSIVE computing(enode) AS (
    SELECT enode FROM original_value WHERE list_contains($names, name)
    UNION
    SELECT unnest(o.children) FROM computing INNER JOIN original_node AS o ON o.enode = computing.enode
)

UPDATE enode SET filtered = rule <> 0
WHERE class IN (
    SELECT c.parent FROM computing INNER JOIN eclass AS c ON c.id = computing.enode
)
RETURNING rule <> 0
