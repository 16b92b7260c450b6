-- applications that may close a cycle, by the heights of their roots and variables
CREATE OR REPLACE TEMP TABLE suspect AS
WITH suspected AS MATERIALIZED (
    SELECT * FROM (
        SELECT
            id, b, m0, m1, root0, root1, height_of[root0] AS height0, height_of[root1] AS height1,
            greatest(height_of[b[1]], height_of[b[2]]) AS top0,
            greatest(height_of[b[3]], height_of[b[4]]) AS top1
        FROM application, (SELECT list(height ORDER BY id) AS height_of FROM eclass)
    )
    WHERE top0 >= height1 OR top1 >= height0
),
pair(id, match, root, leaves, lowest) AS (
    SELECT id, m0, root1, b[1:2], height1 FROM suspected WHERE top0 >= height1
    UNION ALL
    SELECT id, m1, root0, b[3:4], height0 FROM suspected WHERE top1 >= height0
)
FROM pair;
