-- The heads of the rules of the last exploration.
SELECT text FROM head ORDER BY id
