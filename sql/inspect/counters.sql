-- The counters of an e-graph: the next id, a clock later than all stamps, e-nodes and canonical e-classes.
SELECT
    (SELECT max(id) + 1 FROM eclass), (SELECT max(stamp) + 1 FROM enode), (SELECT count(*) FROM enode),
    (SELECT count(DISTINCT class) FROM enode)
