-- Some classes: type, whether they depend on weights only, whether the result needs them.
SELECT c.id, t.type, c.weight_only, x.class IS NOT NULL
FROM eclass AS c
JOIN value_type AS t ON t.id = c.type
LEFT JOIN chosen AS x ON x.class = c.id
WHERE c.id IN (SELECT unnest($classes::INTEGER[]))
ORDER BY c.id
