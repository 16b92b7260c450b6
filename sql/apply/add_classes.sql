-- The classes of new e-nodes, without height labels.
INSERT INTO eclass SELECT id, class, type, 1, false FROM fresh
