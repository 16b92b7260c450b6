-- What the applications ask for: the class of each target root joins the class of its source root.
INSERT INTO union_pair
SELECT 0, min(rule), least(a, b), greatest(a, b)
FROM (
    SELECT a.rule, a.root0 AS a, a.b[i.root0] AS b
    FROM application AS a JOIN instance AS i ON i.id = a.instance
    UNION ALL
    SELECT a.rule, a.root1, a.b[i.root1]
    FROM application AS a JOIN instance AS i ON i.id = a.instance
    WHERE a.root1 > 0
)
WHERE a <> b
GROUP BY least(a, b), greatest(a, b)
