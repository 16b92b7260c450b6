-- Point every class of a moved class at the new canonical one (paths stay one step long).
UPDATE eclass SET parent = moved.new FROM moved WHERE eclass.parent = moved.old
