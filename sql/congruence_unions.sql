-- Congruence closure: equal e-nodes in different classes ask for the union of their classes.
INSERT INTO union_log
SELECT DISTINCT $iteration, $round, 0, a, b
FROM (SELECT classes[1] AS a, unnest(classes[2:]) AS b FROM congruent)
