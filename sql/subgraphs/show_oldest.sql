-- The oldest of equal e-nodes is shown in the place of those that were.
UPDATE enode SET filtered = false, stamp = h.stamp FROM hidden_oldest AS h WHERE h.oldest = enode.id
