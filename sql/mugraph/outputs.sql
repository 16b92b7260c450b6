-- Terms that a kernel may store: whole ones that depend on every axis of the grid, and on the loop if there is one.
-- Those that differ in nothing but their abstract class are one e-class, named by its first term.
SELECT t.first, t.config, t.class, t.uses, t.loads
FROM (SELECT *, min(id) OVER (PARTITION BY config, value, stage) AS first FROM term) AS t
JOIN config AS c ON c.id = t.config
WHERE t.size > 0 AND t.axes = c.grid AND (t.stage = 1 OR (t.stage = 2 AND c.loop = 0))
ORDER BY t.size, t.config, t.id
