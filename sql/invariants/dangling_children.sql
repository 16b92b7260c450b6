-- A child that is no class with e-nodes.
SELECT e.id, e.child
FROM (SELECT id, unnest([c0, c1, c2, c3, c4]) AS child FROM enode) AS e
WHERE e.child <> 0 AND NOT EXISTS (SELECT 1 FROM enode WHERE enode.class = e.child)
