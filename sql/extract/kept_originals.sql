-- E-nodes of the original graph that the cycle filter keeps.
SELECT count(*) FROM enode WHERE iteration = 0 AND NOT filtered
