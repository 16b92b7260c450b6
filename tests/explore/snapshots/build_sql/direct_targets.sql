-- the e-nodes of targets that do not exist, and the classes of all, step by step
CREATE OR REPLACE TEMP TABLE built AS
WITH RECURSIVE
known AS MATERIALIZED (SELECT class, signature, c0, c1, c2 FROM enode WHERE c3 = 0 AND c4 = 0),
built(step, made, id, rule, instance, root0, root1, place0, b, class, type, head, signature, c0, c1, c2, reason) AS (
    SELECT 0, 0, a.id, a.rule, a.instance, a.root0, a.root1,
        i.root0, a.b[:2], 0 AS class, 0 AS type, 0 AS head, 0 AS signature, 0 AS c0, 0 AS c1, 0 AS c2,
        0::BIGINT AS reason
    FROM application AS a JOIN instance AS i ON i.id = a.instance
    UNION ALL (
    WITH before AS (SELECT * FROM built WHERE step < 2),
    request AS MATERIALIZED (
        SELECT id, rule, t.signature, t.type, t.head, coalesce(b[t.s0], 0) AS c0, coalesce(b[t.s1], 0) AS c1, coalesce(b[t.s2], 0) AS c2,
            CASE WHEN place0 = 2 + t.step THEN root0::BIGINT << 32 | id * 2 + 0 END AS home
        FROM before JOIN template AS t USING (instance)
        WHERE made = 0 AND t.step = before.step + 1
    ),
    node AS MATERIALIZED (
        SELECT first, rule, type, head, signature, c0, c1, c2, home, of_known IS NULL AS is_new, made,
            coalesce(of_known, (home >> 32)::INTEGER, made) AS class
        FROM (
            SELECT r.*, k.class AS of_known, (
                $next_id - 1 + (SELECT count(*) FROM before WHERE made > 0)
                + row_number() OVER (PARTITION BY k.class IS NULL ORDER BY r.first)
            )::INTEGER AS made
            FROM (
                SELECT signature, c0, c1, c2, min(id) AS first, min(home) AS home, min(rule) AS rule,
                    any_value(type) AS type, any_value(head) AS head
                FROM request GROUP BY signature, c0, c1, c2
            ) AS r
            LEFT JOIN (
                FROM known UNION ALL SELECT class, signature, c0, c1, c2 FROM before WHERE made > 0
            ) AS k USING (signature, c0, c1, c2)
        )
    )
    SELECT before.step + 1, 0, before.id, before.rule, before.instance, before.root0, before.root1, before.place0,
        before.b || [n.class], 0 AS class, 0 AS type, 0 AS head, 0 AS signature, 0 AS c0, 0 AS c1, 0 AS c2, 0
    FROM before LEFT JOIN (
        SELECT request.id, node.class FROM request JOIN node USING (signature, c0, c1, c2)
    ) AS n USING (id)
    WHERE made = 0
    UNION ALL SELECT step + 1, * EXCLUDE (step) FROM before WHERE made > 0
    UNION ALL SELECT (SELECT any_value(step) FROM before) + 1, made, first, rule, 0,
        0, 0, 0, NULL, class, type, head, signature, c0, c1, c2, home & 4294967295
    FROM node WHERE is_new
    )
)
SELECT * EXCLUDE (step) FROM built WHERE step = 2;

-- the e-nodes of targets that do not exist, and the classes of all, step by step
CREATE OR REPLACE TEMP TABLE built AS
WITH RECURSIVE
known AS MATERIALIZED (SELECT class, signature, c0, c1, c2 FROM enode WHERE c3 = 0 AND c4 = 0),
built(step, made, id, rule, instance, root0, root1, place0, place1, b, class, type, head, signature, c0, c1, c2, reason) AS (
    SELECT 0, 0, a.id, a.rule, a.instance, a.root0, a.root1,
        i.root0, i.root1, a.b[:2], 0 AS class, 0 AS type, 0 AS head, 0 AS signature, 0 AS c0, 0 AS c1, 0 AS c2,
        0::BIGINT AS reason
    FROM application AS a JOIN instance AS i ON i.id = a.instance
    UNION ALL (
    WITH before AS (SELECT * FROM built WHERE step < 3),
    request AS MATERIALIZED (
        SELECT id, rule, t.signature, t.type, t.head, coalesce(b[t.s0], 0) AS c0, coalesce(b[t.s1], 0) AS c1, coalesce(b[t.s2], 0) AS c2,
            least(CASE WHEN place0 = 2 + t.step THEN root0::BIGINT << 32 | id * 2 + 0 END, CASE WHEN place1 = 2 + t.step THEN root1::BIGINT << 32 | id * 2 + 1 END) AS home
        FROM before JOIN template AS t USING (instance)
        WHERE made = 0 AND t.step = before.step + 1
    ),
    node AS MATERIALIZED (
        SELECT first, rule, type, head, signature, c0, c1, c2, home, of_known IS NULL AS is_new, made,
            coalesce(of_known, (home >> 32)::INTEGER, made) AS class
        FROM (
            SELECT r.*, k.class AS of_known, (
                $next_id - 1 + (SELECT count(*) FROM before WHERE made > 0)
                + row_number() OVER (PARTITION BY k.class IS NULL ORDER BY r.first)
            )::INTEGER AS made
            FROM (
                SELECT signature, c0, c1, c2, min(id) AS first, min(home) AS home, min(rule) AS rule,
                    any_value(type) AS type, any_value(head) AS head
                FROM request GROUP BY signature, c0, c1, c2
            ) AS r
            LEFT JOIN (
                FROM known UNION ALL SELECT class, signature, c0, c1, c2 FROM before WHERE made > 0
            ) AS k USING (signature, c0, c1, c2)
        )
    )
    SELECT before.step + 1, 0, before.id, before.rule, before.instance, before.root0, before.root1, before.place0, before.place1,
        before.b || [n.class], 0 AS class, 0 AS type, 0 AS head, 0 AS signature, 0 AS c0, 0 AS c1, 0 AS c2, 0
    FROM before LEFT JOIN (
        SELECT request.id, node.class FROM request JOIN node USING (signature, c0, c1, c2)
    ) AS n USING (id)
    WHERE made = 0
    UNION ALL SELECT step + 1, * EXCLUDE (step) FROM before WHERE made > 0
    UNION ALL SELECT (SELECT any_value(step) FROM before) + 1, made, first, rule, 0,
        0, 0, 0, 0, NULL, class, type, head, signature, c0, c1, c2, home & 4294967295
    FROM node WHERE is_new
    )
)
SELECT * EXCLUDE (step) FROM built WHERE step = 3;

-- the e-nodes of targets that did not exist
CREATE OR REPLACE TEMP TABLE fresh AS
SELECT made AS id, class, type, rule, signature, head,
    c0, c1, c2, 0 AS c3, 0 AS c4, reason
FROM built WHERE made > 0;

-- the applications with the classes of all that their targets have
CREATE OR REPLACE TEMP TABLE application AS
SELECT id, rule, instance, root0, root1, b FROM built WHERE made = 0;

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
            ), (SELECT list(height ORDER BY id) AS height_of FROM eclass)
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
