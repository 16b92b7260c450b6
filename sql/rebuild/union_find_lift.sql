-- The first half of union_find, for many classes (see MANY_CLASSES in egraph/rebuild.py):
-- raise canonical classes to the highest label of those that join them.
UPDATE eclass SET height = joining.height
FROM (
    SELECT m.new, max(e.height) AS height FROM moved AS m JOIN eclass AS e ON e.id = m.old GROUP BY m.new
) AS joining
WHERE eclass.id = joining.new AND eclass.height < joining.height
