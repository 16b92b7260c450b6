-- applications that may close a cycle, by the heights of their roots and variables
CREATE OR REPLACE TEMP TABLE suspect AS
SELECT * FROM (
    SELECT
        id, m0, m1, root0, root1, b, height_of[root0] AS height0, height_of[root1] AS height1,
        greatest(height_of[b[1]], height_of[b[2]]) AS top0,
        greatest(height_of[b[3]], height_of[b[4]]) AS top1
    FROM application, (SELECT list(height ORDER BY id) AS height_of FROM eclass)
)
WHERE top0 >= height1 OR top1 >= height0;
