-- The counters of an e-graph: the next id, the latest stamp, e-nodes and canonical e-classes.
SELECT
    (SELECT max(id) + 1 FROM eclass), (SELECT max(stamp) FROM enode), (SELECT count(*) FROM enode),
    (SELECT count(DISTINCT class) FROM enode)
