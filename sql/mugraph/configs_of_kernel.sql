-- Its configurations: the variables that the grid splits, and the one that the loop traverses.
SELECT DISTINCT
    t.kernel, c.id AS config,
    (SELECT string_agg(v.name, ' ' ORDER BY v.bit) FROM variable AS v WHERE c.grid & v.bit <> 0) AS grid,
    (SELECT v.name FROM variable AS v WHERE v.bit = c.loop) AS loop, c.iterations,
    (SELECT count(*) FROM term AS u WHERE u.level = c.level AND u.config = c.id) AS terms
FROM kernel_term AS t
JOIN config AS c ON c.level = t.level AND c.id = t.config
WHERE t.mugraph = $mugraph
ORDER BY t.kernel
