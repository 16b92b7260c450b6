-- The worlds that have been grown and extracted from.
FROM world ORDER BY id
