-- All pairs (class, class below or equal) over kept e-nodes.
CREATE OR REPLACE TEMP TABLE descendant AS
WITH RECURSIVE
edge AS (
    SELECT DISTINCT class, child
    FROM (SELECT class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered)
    WHERE child > 0
),
below(class, descendant) AS (
    SELECT DISTINCT class, class FROM enode
    UNION
    SELECT below.class, edge.child FROM below JOIN edge ON edge.class = below.descendant
)
SELECT class, descendant FROM below
