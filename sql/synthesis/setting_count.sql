-- How many settings there are.
SELECT count(*) FROM setting
