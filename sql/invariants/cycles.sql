-- Classes that reach themselves over kept e-nodes (cycle filters only). Independent of the labels; slow.
WITH RECURSIVE
edge AS (SELECT DISTINCT class, child FROM kept_edge),
reach(start, class) AS (
    SELECT class, child FROM edge
    UNION
    SELECT reach.start, edge.child FROM reach JOIN edge USING (class)
)
SELECT start FROM reach WHERE start = class
