-- the e-nodes that applications need as one node of their targets and that do not exist
SELECT
    id, coalesce((home >> 32)::INTEGER, id) AS class, type, rule, signature, head,
    c0, c1, c2, 0 AS c3, 0 AS c4, home & 4294967295 AS reason
FROM (
    SELECT
        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,
        min(home) AS home, min(rule) AS rule, any_value(head) AS head, any_value(type) AS type,
        signature, c0, c1, c2
    FROM (
        SELECT a.id AS application, a.rule, t.signature, t.head, t.type, coalesce(a.b[t.s0], 0) AS c0, coalesce(a.b[t.s1], 0) AS c1, coalesce(a.b[t.s2], 0) AS c2,
            CASE WHEN i.root0 = $place THEN a.root0::BIGINT << 32 | a.id * 2 + 0 END AS home
        FROM application AS a
        JOIN template AS t ON t.instance = a.instance
        JOIN instance AS i ON i.id = a.instance
        WHERE t.step = $step
    ) AS request
    ANTI JOIN (SELECT signature, c0, c1, c2 FROM enode WHERE c3 = 0 AND c4 = 0) AS known USING (signature, c0, c1, c2)
    GROUP BY signature, c0, c1, c2
);

-- the e-nodes that applications need as one node of their targets and that do not exist
SELECT
    id, coalesce((home >> 32)::INTEGER, id) AS class, type, rule, signature, head,
    c0, c1, c2, 0 AS c3, 0 AS c4, home & 4294967295 AS reason
FROM (
    SELECT
        ($next_id - 1 + row_number() OVER (ORDER BY min(application)))::INTEGER AS id,
        min(home) AS home, min(rule) AS rule, any_value(head) AS head, any_value(type) AS type,
        signature, c0, c1, c2
    FROM (
        SELECT a.id AS application, a.rule, t.signature, t.head, t.type, coalesce(a.b[t.s0], 0) AS c0, coalesce(a.b[t.s1], 0) AS c1, coalesce(a.b[t.s2], 0) AS c2,
            least(CASE WHEN i.root0 = $place THEN a.root0::BIGINT << 32 | a.id * 2 + 0 END, CASE WHEN i.root1 = $place THEN a.root1::BIGINT << 32 | a.id * 2 + 1 END) AS home
        FROM application AS a
        JOIN template AS t ON t.instance = a.instance
        JOIN instance AS i ON i.id = a.instance
        WHERE t.step = $step
    ) AS request
    ANTI JOIN (SELECT signature, c0, c1, c2 FROM enode WHERE c3 = 0 AND c4 = 0 UNION ALL SELECT signature, c0, c1, c2 FROM fresh) AS known USING (signature, c0, c1, c2)
    GROUP BY signature, c0, c1, c2
);

-- the class of this step's e-node, bound in each application
CREATE OR REPLACE TEMP TABLE application AS
SELECT a.id, a.rule, a.instance, a.root0, a.root1, [a.b[1], a.b[2], e.class] AS b
FROM application AS a
LEFT JOIN template AS t ON t.instance = a.instance AND t.step = $step
LEFT JOIN (
    SELECT class, signature, c0, c1, c2 FROM enode WHERE c3 = 0 AND c4 = 0
    UNION ALL SELECT class, signature, c0, c1, c2 FROM fresh
) AS e ON e.signature = t.signature AND e.c0 = coalesce(a.b[t.s0], 0) AND e.c1 = coalesce(a.b[t.s1], 0) AND e.c2 = coalesce(a.b[t.s2], 0);

-- the classes of new e-nodes
INSERT INTO eclass
SELECT f.id, f.class, f.type, coalesce(own.height, 1), false
FROM fresh AS f LEFT JOIN (
    SELECT class, min(bottom + place) AS height
    FROM (
        SELECT t.place, a.b[t.place] AS class, a.bottom
        FROM (
            SELECT instance, b, greatest(height_of[b[1]], height_of[b[2]], CASE WHEN 3 NOT IN (root0, root1) THEN height_of[b[3]] END, CASE WHEN 4 NOT IN (root0, root1) THEN height_of[b[4]] END) AS bottom
            FROM (
                SELECT a.instance, a.b, i.root0, i.root1
                FROM application AS a JOIN instance AS i ON i.id = a.instance
                WHERE greatest(b[3], b[4]) >= $next_id
            ), (SELECT list(height) AS height_of FROM (SELECT height FROM eclass ORDER BY id))
        ) AS a
        JOIN (SELECT instance, 2 + step AS place FROM template) AS t USING (instance)
    )
    WHERE class >= $next_id
    GROUP BY class
) AS own ON own.class = f.id
;

-- the unions of new roots with their sources, in whose classes they are
INSERT INTO union_log
SELECT
    $iteration, a.rule, f.class, f.id, a.instance, (f.reason % 2)::INTEGER,
    [a.b[1], a.b[2], CASE WHEN 3 = CASE WHEN f.reason % 2 = 0 THEN i.root0 ELSE i.root1 END THEN f.id ELSE a.b[3] END, CASE WHEN 4 = CASE WHEN f.reason % 2 = 0 THEN i.root0 ELSE i.root1 END THEN f.id ELSE a.b[4] END]
FROM fresh AS f
JOIN application AS a ON a.id = f.reason // 2
JOIN instance AS i ON i.id = a.instance;
