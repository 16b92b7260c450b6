SELECT count(*), count(DISTINCT class) FROM enode
