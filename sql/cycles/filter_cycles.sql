-- What breaks the cycles is neither matched nor extracted any more.
UPDATE enode SET filtered = true WHERE id IN (SELECT unnest($enodes))
