-- The height labels of all classes.
SELECT id, height FROM eclass
