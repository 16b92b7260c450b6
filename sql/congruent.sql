-- Groups of e-nodes that became equal. The oldest stays, the others go; it is filtered only if all were:
-- whether it closes a cycle now is looked at anew.
CREATE OR REPLACE TEMP TABLE congruent AS
SELECT
    signature, c0, c1, c2, c3, c4,
    min(id) AS kept, min(class) AS class, bool_and(filtered) AS filtered, bool_or(filtered) AS was_filtered
FROM enode
WHERE EXISTS (SELECT 1 FROM touched WHERE touched.signature = enode.signature AND touched.c0 = enode.c0)
GROUP BY signature, c0, c1, c2, c3, c4
HAVING count(*) > 1
