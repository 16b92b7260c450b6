-- What every class has become, by id: ids are dense.
SELECT parent FROM eclass ORDER BY id
