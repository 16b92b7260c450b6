-- The new e-nodes.
INSERT INTO enode
SELECT id, class, signature, head, c0, c1, c2, c3, c4, $iteration, rule, $stamp, false FROM fresh
