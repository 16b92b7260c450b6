-- Point every class of a moved class at the new canonical one (paths stay one step long), and raise that
-- one to the highest label of its members (no label is above that of the canonical class it belongs to).
UPDATE eclass SET parent = change.parent, height = greatest(eclass.height, change.height)
FROM (
    SELECT id, parent, max(height) AS height
    FROM (
        SELECT unnest([e.id, m.new]) AS id, m.new AS parent, e.height
        FROM eclass AS e JOIN moved AS m ON m.old = e.parent
    )
    GROUP BY id, parent
) AS change
WHERE eclass.id = change.id
