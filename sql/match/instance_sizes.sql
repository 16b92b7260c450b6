-- By rule: the most e-nodes that an instance of it builds, and the most operands that one of these has.
SELECT i.rule, max(t.nodes), max(t.operands)
FROM (
    SELECT
        instance, count(*) AS nodes,
        max((s0 > 0)::INTEGER + (s1 > 0)::INTEGER + (s2 > 0)::INTEGER + (s3 > 0)::INTEGER + (s4 > 0)::INTEGER)
            AS operands
    FROM template GROUP BY instance
) AS t
JOIN instance AS i ON i.id = t.instance
GROUP BY i.rule
