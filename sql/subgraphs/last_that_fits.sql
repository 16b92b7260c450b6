-- The last application such that all e-nodes that come into the subgraph up to it fit into the rest of its limit.
SELECT coalesce(max(application), 0)
FROM (
    SELECT application, sum(count(*)) OVER (ORDER BY application) AS total FROM entering GROUP BY application
)
WHERE total <= $budget
