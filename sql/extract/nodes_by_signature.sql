-- The e-nodes that may be chosen, by signature and canonical children.
SELECT id, class, signature, c0, c1, c2, c3, c4 FROM enode WHERE NOT filtered ORDER BY id
