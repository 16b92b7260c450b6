-- Equal e-nodes of the graph as it was loaded (each in a class of its own so far).
CREATE OR REPLACE TEMP TABLE congruent AS
SELECT
    signature, c0, c1, c2, c3, c4,
    min(id) AS kept, min(class) AS class, false AS filtered, false AS was_filtered
FROM enode
GROUP BY signature, c0, c1, c2, c3, c4
HAVING count(*) > 1
