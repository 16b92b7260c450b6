-- How many e-nodes and canonical e-classes there are.
SELECT count(*), count(DISTINCT class) FROM enode
