-- The work of each rule: its law, matches, unions, e-nodes that it made, those of them in the result, seconds.
SELECT
    min(rule.id), rule.name, any_value(rule.law),
    coalesce(sum(matched.matches), 0)::BIGINT, coalesce(sum(united.unions), 0)::BIGINT,
    coalesce(sum(built.e_nodes), 0)::BIGINT, coalesce(sum(used.e_nodes), 0)::BIGINT,
    coalesce(sum(timed.seconds), 0.0)
FROM rule
LEFT JOIN (SELECT rule, sum(matches)::BIGINT AS matches FROM match_log GROUP BY rule) AS matched ON matched.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS unions FROM union_log GROUP BY rule) AS united ON united.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS e_nodes FROM enode GROUP BY rule) AS built ON built.rule = rule.id
LEFT JOIN (
    SELECT enode.rule, count(*) AS e_nodes FROM chosen JOIN enode ON enode.id = chosen.enode GROUP BY enode.rule
) AS used ON used.rule = rule.id
LEFT JOIN (SELECT rule, sum(seconds) AS seconds FROM rule_time GROUP BY rule) AS timed ON timed.rule = rule.id
GROUP BY rule.name
ORDER BY sum(matched.matches) DESC NULLS LAST, min(rule.id)
