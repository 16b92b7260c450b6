-- The work of each rule: matches, new e-nodes, unions asked for, e-nodes in the extracted graph, seconds.
SELECT
    rule.name,
    coalesce(sum(matched.matches), 0)::BIGINT AS matches,
    coalesce(sum(built.e_nodes), 0)::BIGINT AS e_nodes,
    coalesce(sum(united.unions), 0)::BIGINT AS unions,
    coalesce(sum(used.e_nodes), 0)::BIGINT AS extracted,
    coalesce(sum(timed.seconds), 0.0) AS seconds
FROM rule
LEFT JOIN (SELECT rule, sum(matches)::BIGINT AS matches FROM match_log GROUP BY rule) AS matched ON matched.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS e_nodes FROM enode GROUP BY rule) AS built ON built.rule = rule.id
LEFT JOIN (SELECT rule, count(*) AS unions FROM union_log GROUP BY rule) AS united ON united.rule = rule.id
LEFT JOIN (
    SELECT enode.rule, count(*) AS e_nodes FROM chosen JOIN enode ON enode.id = chosen.enode GROUP BY enode.rule
) AS used ON used.rule = rule.id
LEFT JOIN (SELECT rule, sum(seconds) AS seconds FROM rule_time GROUP BY rule) AS timed ON timed.rule = rule.id
GROUP BY rule.name -- an e-graph that was explored twice has its rules twice
HAVING sum(matched.matches) > 0 OR sum(timed.seconds) > 0
ORDER BY 2 DESC, 6 DESC, 1
