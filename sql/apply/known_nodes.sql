-- The e-nodes, as targets look for them.
SELECT signature, class, c0, c1, c2, c3, c4 FROM enode
