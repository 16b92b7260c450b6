-- Groups of e-nodes that are equal by now. Only rows that the phase has written can have become equal to
-- others. The oldest that the cycle filter kept will stay (the oldest, if all are filtered).
CREATE OR REPLACE TEMP TABLE congruent AS
SELECT
    signature, c0, c1, c2, c3, c4, coalesce(min(id) FILTER (NOT filtered), min(id)) AS kept,
    min(class) AS lowest_class
FROM enode
SEMI JOIN (SELECT signature, c0, c1 FROM enode WHERE stamp = $stamp) AS new_row USING (signature, c0, c1)
GROUP BY signature, c0, c1, c2, c3, c4
HAVING count(*) > 1
