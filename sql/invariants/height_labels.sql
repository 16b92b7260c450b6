-- Kept e-nodes that are not above all their children: so no cycle is left (cycle filters only).
SELECT e.id, e.class, child.id AS child
FROM (SELECT id, class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered) AS e
JOIN eclass AS child ON child.id = e.child
JOIN eclass AS parent ON parent.id = e.class
WHERE child.height >= parent.height
