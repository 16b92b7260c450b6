-- Congruence closure: e-nodes that are equal by now, but in different classes, ask for the union of these.
-- Only rows that the phase has written can have become equal to others.
INSERT INTO union_pair
SELECT DISTINCT $round, 0, classes[1], unnest(classes[2:])
FROM (
    SELECT list_sort(list(DISTINCT class)) AS classes
    FROM enode
    SEMI JOIN (SELECT signature, c0 FROM enode WHERE stamp = $stamp) AS changed USING (signature, c0)
    GROUP BY signature, c0, c1, c2, c3, c4
    HAVING count(DISTINCT class) > 1
)
