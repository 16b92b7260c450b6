-- The last application such that all e-nodes built up to it fit into the node budget that is left. An e-node
-- counts for the first application that it is built for.
SELECT coalesce(max(application), 0)
FROM (
    SELECT application, sum(count(*)) OVER (ORDER BY application) AS total
    FROM (
        SELECT class, min(application) AS application
        FROM (SELECT id AS application, unnest(b) AS class FROM application)
        WHERE class >= $next_id
        GROUP BY class
    )
    GROUP BY application
)
WHERE total <= $budget
