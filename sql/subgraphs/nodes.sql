-- All e-nodes of the universe.
SELECT id, class, signature, c0, c1, c2, c3, c4 FROM enode
