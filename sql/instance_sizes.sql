-- The most e-nodes that an instance of a rule builds, by rule.
SELECT i.rule, max(t.nodes)
FROM (SELECT instance, count(*) AS nodes FROM template GROUP BY instance) AS t
JOIN instance AS i ON i.id = t.instance
GROUP BY i.rule
