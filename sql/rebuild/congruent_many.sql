-- What congruent finds, where the phase has written so many rows that selecting the rows that may be equal to
-- one of them takes longer than comparing all: groups of e-nodes that are equal by now.
CREATE OR REPLACE TEMP TABLE congruent AS
SELECT
    signature, c0, c1, c2, c3, c4, coalesce(min(id) FILTER (NOT filtered), min(id)) AS kept,
    min(class) AS lowest_class
FROM enode
GROUP BY signature, c0, c1, c2, c3, c4
HAVING count(*) > 1
