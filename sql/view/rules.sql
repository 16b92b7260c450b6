-- What each rule did: its law, matches, unions, e-nodes that it made, those of them in the result, seconds.
SELECT
    rule.id, rule.name, rule.law,
    coalesce(matched.matches, 0), coalesce(united.unions, 0), coalesce(built.e_nodes, 0),
    coalesce(used.e_nodes, 0), coalesce(timed.seconds, 0.0)
FROM rule
LEFT JOIN (SELECT rule, sum(matches)::BIGINT AS matches FROM match_log GROUP BY rule) AS matched ON matched.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS unions FROM union_log GROUP BY rule) AS united ON united.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS e_nodes FROM enode GROUP BY rule) AS built ON built.rule = rule.id
LEFT JOIN (
    SELECT enode.rule, count(*) AS e_nodes FROM chosen JOIN enode ON enode.id = chosen.enode GROUP BY enode.rule
) AS used ON used.rule = rule.id
LEFT JOIN (SELECT rule, sum(seconds) AS seconds FROM rule_time GROUP BY rule) AS timed ON timed.rule = rule.id
ORDER BY matched.matches DESC NULLS LAST, rule.id
