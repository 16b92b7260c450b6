-- The e-nodes, as targets look for them and unions change them.
SELECT id, class, signature, c0, c1, c2, c3, c4, filtered FROM enode
