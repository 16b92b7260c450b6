-- Where of equal e-nodes one stays that is shown, although an older one is not: that one, and when a shown one changed.
CREATE OR REPLACE TEMP TABLE hidden_oldest AS
SELECT c.kept, min(e.id) AS oldest, max(e.stamp) FILTER (NOT e.filtered) AS stamp
FROM congruent AS c JOIN enode AS e USING (signature, c0, c1, c2, c3, c4)
GROUP BY c.kept
HAVING min(e.id) <> c.kept
