-- The classes of new e-nodes: type from the signature, height just above the highest child.
INSERT INTO eclass
SELECT n.id, n.id, any_value(s.type), 1 + coalesce(max(child.height), 0), false
FROM (
    SELECT id, signature, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE id >= $next_id
) AS n
JOIN signature AS s ON s.id = n.signature
LEFT JOIN eclass AS child ON child.id = n.child
GROUP BY n.id
