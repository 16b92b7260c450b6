-- Of the requested e-nodes, add those that do not exist, each in a class of its own.
INSERT INTO enode
SELECT id, id, signature, head, c0, c1, c2, c3, c4, $iteration, rule, $stamp, false
FROM (
    SELECT
        ($next_id - 1 + row_number() OVER (ORDER BY min(application), min(position)))::INTEGER AS id,
        arg_min(rule, application) AS rule, signature, head, c0, c1, c2, c3, c4
    FROM request
    WHERE NOT EXISTS (
        SELECT 1 FROM enode AS e
        WHERE e.signature = request.signature AND e.c0 = request.c0 AND e.c1 = request.c1
            AND e.c2 = request.c2 AND e.c3 = request.c3 AND e.c4 = request.c4
    )
    GROUP BY signature, head, c0, c1, c2, c3, c4
)
