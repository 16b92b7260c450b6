-- How often each rule was applied to operands of which some depend on weights only, and how often the result needed it.
SELECT u.rule, list_transform(r.operands, lambda o: known.is_weight[u.bindings[o]]) AS weights, count(*), count(n.place)
FROM (SELECT *, row_number() OVER (ORDER BY rowid) AS place FROM union_log WHERE rule > 0) AS u
JOIN rule AS r ON r.id = u.rule
JOIN (
    SELECT list(p.weight_only ORDER BY c.id) AS is_weight FROM eclass AS c JOIN eclass AS p ON p.id = c.parent
) AS known ON true
LEFT JOIN needed_application AS n ON n.place = u.place
GROUP BY ALL
ORDER BY ALL
