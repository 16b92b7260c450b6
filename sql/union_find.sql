-- Point every class of a moved class at the new canonical one (paths stay one step long), and lift that
-- one to the highest label of its members.
UPDATE eclass SET parent = change.parent, height = change.height
FROM (
    SELECT e.id, coalesce(m.new, e.parent) AS parent, greatest(e.height, coalesce(top.height, 0)) AS height
    FROM eclass AS e
    LEFT JOIN moved AS m ON m.old = e.parent
    LEFT JOIN (
        SELECT moved.new AS id, max(old.height) AS height
        FROM moved JOIN eclass AS old ON old.id = moved.old GROUP BY moved.new
    ) AS top ON top.id = e.id
    WHERE m.old IS NOT NULL OR top.id IS NOT NULL
) AS change
WHERE eclass.id = change.id
