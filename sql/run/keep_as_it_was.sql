-- Some values of the original graph, and the values they are computed from, are extracted by its own e-nodes only.
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
