-- Members of subgraphs that have become other e-nodes since, and members that these are in the same subgraphs.
CREATE OR REPLACE TEMP TABLE equal_member AS
WITH became AS (SELECT unnest($gone) AS enode, unnest($kept) AS kept)
SELECT m.*, became.kept FROM subgraph_node AS m JOIN became USING (enode)
UNION ALL
SELECT m.*, m.enode FROM subgraph_node AS m WHERE m.enode IN (SELECT kept FROM became)
