-- Patterns compare one column of an e-node, its head: no join is needed to match.
UPDATE enode SET head = s.head FROM signature AS s WHERE s.id = enode.signature
