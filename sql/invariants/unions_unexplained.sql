-- Merged classes that no union in the log touches.
SELECT id FROM eclass
WHERE parent <> id
  AND NOT EXISTS (SELECT 1 FROM union_log AS u WHERE u.a = eclass.id)
  AND NOT EXISTS (SELECT 1 FROM union_log AS u WHERE u.b = eclass.id)
