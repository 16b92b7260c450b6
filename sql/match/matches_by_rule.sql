-- How many applications each rule has.
SELECT rule, count(*) FROM application GROUP BY rule ORDER BY rule
