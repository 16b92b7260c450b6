-- Congruence closure: equal e-nodes in different classes ask for the union of these.
INSERT INTO union_pair (round, rule, a, b)
SELECT DISTINCT $round, 0, congruent.lowest_class, e.class
FROM congruent JOIN enode AS e USING (signature, c0, c1, c2, c3, c4)
WHERE e.class <> congruent.lowest_class AND congruent.lowest_class < congruent.highest_class
