-- Members of subgraphs of which one is dropped as equal to another, or stays in the place of one; see rebuild/congruent.
CREATE OR REPLACE TEMP TABLE equal_member AS
SELECT m.*, c.kept
FROM subgraph_node AS m
JOIN enode AS e ON e.id = m.enode
JOIN congruent AS c USING (signature, c0, c1, c2, c3, c4)
