-- A union-find path longer than one step, or a parent that is younger than its child.
SELECT child.id, child.parent
FROM eclass AS child JOIN eclass AS parent ON parent.id = child.parent
WHERE parent.parent <> parent.id OR child.parent > child.id
