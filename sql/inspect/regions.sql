-- The regions of a model, each with its places.
SELECT number, list(outputs ORDER BY place) AS outputs, any_value(nodes) AS nodes, any_value(program) AS program
FROM region
GROUP BY number
ORDER BY number
