-- The e-nodes that the cycle filter kept, with their operands.
SELECT id, class, c0, c1, c2, c3, c4 FROM enode WHERE NOT filtered
