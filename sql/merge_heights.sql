-- A merged class is as high as its highest member, and weight-only if a member is.
UPDATE eclass SET height = merged.height
FROM (
    SELECT moved.new AS id, max(old.height) AS height
    FROM moved JOIN eclass AS old ON old.id = moved.old GROUP BY moved.new
) AS merged
WHERE eclass.id = merged.id AND eclass.height < merged.height
