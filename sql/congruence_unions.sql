-- Congruence closure: equal e-nodes in different classes ask for the union of these.
INSERT INTO union_pair (round, rule, a, b)
SELECT DISTINCT $round, 0, classes[1], unnest(classes[2:]) FROM congruent
