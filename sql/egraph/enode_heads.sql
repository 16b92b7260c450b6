-- What patterns compare of an e-node is a column of its own: no join is needed to match.
UPDATE enode SET head = s.head FROM signature AS s WHERE s.id = enode.signature
