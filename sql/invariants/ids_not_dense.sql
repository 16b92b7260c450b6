-- Class ids are 1, 2, 3, …: lists of all classes are indexed by them.
SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM eclass) WHERE id <> place
