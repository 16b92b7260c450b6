-- Matches of each rule in each iteration.
SELECT rule, iteration, sum(matches)::BIGINT FROM match_log GROUP BY rule, iteration ORDER BY rule, iteration
