-- Every derivation is kept: an e-node of the term whose value it has.
INSERT INTO derivation
SELECT t.id, e.op, e.name, e.variable, e.a, e.b
FROM evaluated AS e
JOIN term AS t USING (config, value, stage, class)
