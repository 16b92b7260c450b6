-- The original graph as it was loaded, before equal e-nodes become one.
INSERT INTO original_node SELECT id, signature, [c0, c1, c2, c3, c4] FROM enode
