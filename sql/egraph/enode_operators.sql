-- The operator, attributes (JSON) and type of every e-node.
SELECT id, op, attrs, type FROM enode_text
