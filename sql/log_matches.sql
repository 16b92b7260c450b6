INSERT INTO match_log SELECT $iteration, rule, count(*) FROM application GROUP BY rule
