-- The same as new_classes_text in explore/apply/targets.py, for so many classes that a list of all labels no
-- longer fits into the processor's cache, or several threads, under which no list is in order: labels are joined
-- (see MANY_LABELS in explore/apply/direct.py).
INSERT INTO eclass
WITH bottom AS (
    SELECT m.application, max(old.height) AS height
    FROM (SELECT id AS application, unnest(b) AS class FROM application WHERE list_max(b) >= $next_id) AS m
    JOIN eclass AS old ON old.id = m.class
    GROUP BY m.application
)
SELECT class, class, any_value(type), coalesce(min(bottom.height + place), 1), false
FROM (
    SELECT a.id AS application, len(a.b) - $steps + t.step AS place, a.b[place] AS class, t.type
    FROM application AS a JOIN template AS t ON t.instance = a.instance
)
LEFT JOIN bottom USING (application)
WHERE class >= $next_id
GROUP BY class
