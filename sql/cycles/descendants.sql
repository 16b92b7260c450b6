-- All pairs (class, class below or equal) over kept e-nodes.
CREATE OR REPLACE TEMP TABLE descendant AS
WITH RECURSIVE
edge AS (SELECT DISTINCT class, child FROM kept_edge),
below(class, descendant) AS (
    SELECT DISTINCT class, class FROM enode
    UNION
    SELECT below.class, edge.child FROM below JOIN edge ON edge.class = below.descendant
)
SELECT class, descendant FROM below
