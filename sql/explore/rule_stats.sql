-- Per rule of this exploration: matches worked on, unions that it asked for, seconds of matching.
SELECT r.name, coalesce(m.matches, 0), coalesce(u.applied, 0), coalesce(t.seconds, 0)
FROM rule AS r
LEFT JOIN (SELECT rule, sum(matches) AS matches FROM match_log GROUP BY rule) AS m ON m.rule = r.id
LEFT JOIN (SELECT rule, count(*) AS applied FROM union_log GROUP BY rule) AS u ON u.rule = r.id
LEFT JOIN rule_time AS t ON t.rule = r.id
WHERE r.id >= $first
ORDER BY r.id
