-- Classes that reach themselves over kept e-nodes (cycle filters only). Independent of the labels; slow.
WITH RECURSIVE
edge AS (
    SELECT DISTINCT class, child
    FROM (SELECT class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered)
    WHERE child > 0
),
reach(start, class) AS (
    SELECT class, child FROM edge
    UNION
    SELECT reach.start, edge.child FROM reach JOIN edge USING (class)
)
SELECT start FROM reach WHERE start = class
