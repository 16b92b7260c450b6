-- Groups of e-nodes that are equal by now. The oldest that the cycle filter kept will stay (the oldest, if all are
-- filtered). All e-nodes are compared: to select first those that a changed row may be equal to takes longer where
-- many changed, and hardly less where few did.
CREATE OR REPLACE TEMP TABLE congruent AS
SELECT
    signature, c0, c1, c2, c3, c4, coalesce(min(id) FILTER (NOT filtered), min(id)) AS kept,
    min(class) AS lowest_class, max(class) AS highest_class
FROM enode
GROUP BY signature, c0, c1, c2, c3, c4
HAVING count(*) > 1
