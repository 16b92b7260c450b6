-- Of the e-nodes that the applications want as one node of their targets (its children are bound by now),
-- add those that do not exist, each in a class of its own.
INSERT INTO enode
SELECT id, id, signature, head, c0, c1, c2, c3, c4, $iteration, rule, $stamp, false
FROM (
    SELECT
        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,
        min(rule) AS rule, signature, head, c0, c1, c2, c3, c4
    FROM (
        SELECT
            a.id AS application, a.rule, t.signature, t.head,
            coalesce(a.b[t.s0], 0) AS c0, coalesce(a.b[t.s1], 0) AS c1, coalesce(a.b[t.s2], 0) AS c2,
            coalesce(a.b[t.s3], 0) AS c3, coalesce(a.b[t.s4], 0) AS c4
        FROM application AS a JOIN template AS t ON t.instance = a.instance
        WHERE t.step = $step
    ) AS request
    ANTI JOIN enode USING (signature, c0, c1, c2, c3, c4)
    GROUP BY signature, head, c0, c1, c2, c3, c4
)
