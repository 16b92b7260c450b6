-- The laws that are candidates by now.
SELECT law FROM candidate
