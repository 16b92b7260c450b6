-- An e-node whose class has no row, or a canonical class without e-nodes.
SELECT e.class AS id FROM enode AS e WHERE NOT EXISTS (SELECT 1 FROM eclass WHERE eclass.id = e.class)
UNION ALL
SELECT c.id FROM eclass AS c
WHERE c.parent = c.id AND NOT EXISTS (SELECT 1 FROM enode WHERE enode.class = c.id)
