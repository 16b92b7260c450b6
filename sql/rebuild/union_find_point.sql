-- The second half of union_find: point every class of a moved class at the new canonical one.
UPDATE eclass SET parent = m.new FROM moved AS m WHERE eclass.parent = m.old
