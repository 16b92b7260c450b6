-- How big an e-graph is, as rows of (name, count).
SELECT what, amount FROM (
    SELECT 1 AS place, 'e-nodes' AS what, count(*) AS amount FROM enode
    UNION ALL SELECT 2, 'e-nodes that the cycle filter dropped', count(*) FILTER (filtered) FROM enode
    UNION ALL SELECT 3, 'e-nodes of the original graph', count(*) FILTER (iteration = 0) FROM enode
    UNION ALL SELECT 4, 'e-classes', count(*) FROM eclass WHERE parent = id
    UNION ALL SELECT 5, 'e-classes that depend on weights only', count(*) FROM eclass WHERE parent = id AND weight_only
    UNION ALL SELECT 6, 'unions', count(*) FROM union_log
    UNION ALL SELECT 7, 'symbols (operator and attributes)', count(*) FROM symbol
    UNION ALL SELECT 8, 'signatures (symbol and types)', count(*) FROM signature
    UNION ALL SELECT 9, 'e-nodes in the extracted graph', count(*) FROM chosen
    UNION ALL SELECT 10, 'rules', count(*) FROM rule
    UNION ALL SELECT 11, 'iterations', count(*) FROM iteration_log
)
ORDER BY place
