-- Drop the closers: the youngest e-node of each cycle found.
UPDATE enode SET filtered = true FROM closer WHERE enode.id = closer.enode
