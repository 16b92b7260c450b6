SELECT rule, count(*) FROM application GROUP BY rule ORDER BY rule
