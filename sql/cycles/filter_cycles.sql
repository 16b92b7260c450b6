-- Filter the e-nodes that break the cycles, by their ages: they are neither matched nor extracted any more.
UPDATE enode SET filtered = true
WHERE id IN (SELECT enode FROM cycle_core WHERE age IN (SELECT unnest($ages)))
