-- The unions of a round, both ways.
CREATE OR REPLACE TEMP TABLE link AS
SELECT a, b FROM union_log WHERE round = $round
UNION
SELECT b, a FROM union_log WHERE round = $round
