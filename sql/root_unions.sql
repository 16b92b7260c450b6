-- What the applications ask for: the class of each target root joins the class of its source root.
-- Fills union_pair, round 0.
SELECT 0 AS round, min(rule) AS rule, least(a, b) AS a, greatest(a, b) AS b
FROM (
    SELECT a.rule, unnest([a.root0, a.root1]) AS a, unnest([a.b[i.root0], a.b[i.root1]]) AS b
    FROM application AS a JOIN instance AS i ON i.id = a.instance
)
WHERE a > 0 AND a <> b
GROUP BY least(a, b), greatest(a, b)
