-- The last application such that all e-nodes built up to it fit.
SELECT coalesce(max(application), 0)
FROM (SELECT application, sum(count(*)) OVER (ORDER BY application) AS total FROM built GROUP BY application)
WHERE total <= $room
