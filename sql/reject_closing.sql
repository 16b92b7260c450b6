-- Drop the applications that would close a cycle.
DELETE FROM application
WHERE id IN (
    SELECT a.id
    FROM (
        SELECT id, unnest(b) AS variable, root0 AS root FROM application
        UNION
        SELECT id, unnest(b), root1 FROM application WHERE root1 > 0
    ) AS a
    JOIN closing USING (variable, root)
)
