-- Matches of each rule in each iteration; of one that explorations have under several ids, by the first.
SELECT first.id, m.iteration, sum(m.matches)::BIGINT
FROM match_log AS m
JOIN rule ON rule.id = m.rule
JOIN (SELECT name, min(id) AS id FROM rule GROUP BY name) AS first ON first.name = rule.name
GROUP BY first.id, m.iteration
ORDER BY first.id, m.iteration
