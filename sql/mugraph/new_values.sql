-- The terms that were just added, each with the first evaluated candidate that has its value.
SELECT t.id, min(e.id)
FROM term AS t
JOIN evaluated AS e USING (config, value, stage, class)
WHERE t.id >= $first
GROUP BY t.id
