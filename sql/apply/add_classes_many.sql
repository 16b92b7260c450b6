-- The same as labelled_classes_text in explore/apply/direct_targets.py, with labels joined instead of looked up
-- in a list of them all (see MANY_LABELS in explore/apply/direct.py).
INSERT INTO eclass
WITH bottom AS (
    SELECT m.application, max(old.height) AS height
    FROM (
        SELECT
            a.id AS application, unnest(a.b) AS class, generate_subscripts(a.b, 1) AS place, len(a.b) AS places,
            i.root0, i.root1
        FROM application AS a JOIN instance AS i ON i.id = a.instance
        WHERE list_max(a.b) >= $next_id
    ) AS m
    JOIN eclass AS old ON old.id = m.class
    WHERE m.place <= m.places - $steps OR m.place NOT IN (m.root0, m.root1)
    GROUP BY m.application
),
own AS (
    SELECT class, min(bottom.height + place) AS height
    FROM (
        SELECT a.id AS application, len(a.b) - $steps + t.step AS place, a.b[place] AS class
        FROM application AS a JOIN template AS t ON t.instance = a.instance
    )
    LEFT JOIN bottom USING (application)
    WHERE class >= $next_id
    GROUP BY class
)
SELECT f.id, f.class, f.type, coalesce(own.height, 1), false
FROM fresh AS f LEFT JOIN own ON own.class = f.id
