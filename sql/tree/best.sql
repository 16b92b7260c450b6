-- How the cheapest world came about.
SELECT rule, applications FROM tree_best ORDER BY step
