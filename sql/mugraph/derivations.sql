-- The e-nodes of all configurations; terms that differ in nothing but their abstract class are one e-class, named
-- by its first term.
WITH same AS (
    SELECT id, config, min(id) OVER (PARTITION BY config, value, stage) AS first
    FROM term
)
SELECT DISTINCT s.config, s.first, d.op, d.name, d.variable, a.first, coalesce(b.first, 0)
FROM derivation AS d
JOIN same AS s ON s.id = d.term
JOIN same AS a ON a.id = d.a
LEFT JOIN same AS b ON b.id = d.b
ORDER BY ALL
