-- The classes, as unions change them.
SELECT id, parent, height FROM eclass
