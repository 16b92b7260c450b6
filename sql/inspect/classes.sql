-- The e-classes with most e-nodes: their type, and how often each operator occurs in them.
SELECT
    class, sum(amount)::BIGINT AS e_nodes, any_value(type) AS type,
    string_agg(op || ' ' || amount, ', ' ORDER BY amount DESC, op) AS operators
FROM (
    SELECT class, type, op, count(*) AS amount FROM enode_text WHERE NOT filtered GROUP BY class, type, op
)
GROUP BY class
ORDER BY e_nodes DESC, class
LIMIT $shown
