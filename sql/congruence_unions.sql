-- Congruence closure: equal e-nodes in different classes ask for the union of their classes.
CREATE OR REPLACE TEMP TABLE union_pair AS
SELECT DISTINCT 0 AS rule, congruent.class AS a, enode.class AS b
FROM congruent
JOIN enode USING (signature, c0, c1, c2, c3, c4)
WHERE enode.class <> congruent.class
