-- What each rule did: matches, new e-nodes, unions asked for, e-nodes in the extracted graph, seconds.
SELECT
    rule.name,
    coalesce(matched.matches, 0) AS matches,
    coalesce(built.e_nodes, 0) AS e_nodes,
    coalesce(united.unions, 0) AS unions,
    coalesce(used.e_nodes, 0) AS extracted,
    coalesce(timed.seconds, 0.0) AS seconds
FROM rule
LEFT JOIN (SELECT rule, sum(matches)::BIGINT AS matches FROM match_log GROUP BY rule) AS matched ON matched.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS e_nodes FROM enode GROUP BY rule) AS built ON built.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS unions FROM union_log GROUP BY rule) AS united ON united.rule = rule.id
LEFT JOIN (
    SELECT enode.rule, count(*) AS e_nodes FROM chosen JOIN enode ON enode.id = chosen.enode GROUP BY enode.rule
) AS used ON used.rule = rule.id
LEFT JOIN (SELECT rule, sum(seconds) AS seconds FROM rule_time GROUP BY rule) AS timed ON timed.rule = rule.id
WHERE matches > 0 OR seconds > 0
ORDER BY matches DESC, seconds DESC, rule.name
