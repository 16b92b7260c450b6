-- The e-node that extraction starts from, by its first id: the only output, or the tuple of all, which is
-- loaded last.
SELECT CASE WHEN count(*) = 1 THEN min(class) ELSE (SELECT max(enode) FROM original_node) END FROM graph_output
