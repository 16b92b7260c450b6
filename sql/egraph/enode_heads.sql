-- What patterns compare of an e-node depends on the rules: set when an exploration begins.
UPDATE enode SET head = n.head FROM new_head AS n WHERE enode.signature = n.signature
