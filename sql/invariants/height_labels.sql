-- Kept e-nodes that are not above all their children: so no cycle is left (cycle filters only).
SELECT e.enode, e.class, e.child
FROM kept_edge AS e
JOIN eclass AS child ON child.id = e.child
JOIN eclass AS parent ON parent.id = e.class
WHERE child.height >= parent.height
