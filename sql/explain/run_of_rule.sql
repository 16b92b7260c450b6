-- The work of a run on a rule: per iteration, the matches worked on and the e-nodes made.
SELECT iteration, sum(matches)::BIGINT AS matches, sum(e_nodes)::BIGINT AS e_nodes
FROM (
    SELECT m.iteration, m.matches, 0 AS e_nodes
    FROM match_log AS m JOIN rule AS r ON r.id = m.rule WHERE r.name = $rule
    UNION ALL
    SELECT e.iteration, 0, count(*)
    FROM enode AS e JOIN rule AS r ON r.id = e.rule WHERE r.name = $rule GROUP BY e.iteration
)
GROUP BY iteration
ORDER BY iteration
