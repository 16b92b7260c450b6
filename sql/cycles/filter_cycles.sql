-- Filter the e-nodes that break the cycles: they are neither matched nor extracted any more.
UPDATE enode SET filtered = true WHERE id IN (SELECT unnest($enodes))
