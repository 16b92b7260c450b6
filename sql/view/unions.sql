-- The unions that made some classes, in order; of each class the first so many.
SELECT class.parent, u.iteration, u.rule, u.a, u.b
FROM union_log AS u JOIN eclass AS class ON class.id = u.a
WHERE class.parent IN (SELECT unnest($classes::INTEGER[]))
QUALIFY row_number() OVER (PARTITION BY class.parent ORDER BY u.rowid) <= $most
ORDER BY class.parent, u.rowid
