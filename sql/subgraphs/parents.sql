-- The present class of every class, by id: ids are dense.
SELECT parent FROM eclass ORDER BY id
