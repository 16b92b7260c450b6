-- The original graph's classes get labels that fit those of the copies.
UPDATE eclass SET height = label.height FROM label WHERE label.id = eclass.id
