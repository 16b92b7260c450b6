-- Groups of e-nodes that are equal by now: the oldest will stay. It is filtered only if all were; whether
-- it closes a cycle now is looked at anew.
CREATE OR REPLACE TEMP TABLE congruent AS
SELECT
    signature, c0, c1, c2, c3, c4,
    min(id) AS kept, list_sort(list(DISTINCT class)) AS classes, bool_and(filtered) AS filtered
FROM enode
WHERE EXISTS (
    SELECT 1 FROM enode AS changed
    WHERE changed.stamp = $stamp AND changed.signature = enode.signature AND changed.c0 = enode.c0
)
GROUP BY signature, c0, c1, c2, c3, c4
HAVING count(*) > 1
