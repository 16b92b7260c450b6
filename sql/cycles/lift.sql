-- Raise the height labels of classes until each is above those of its kept children: to the lowest that are.
-- They rise from the e-nodes that break them upwards, all that are as far from these in a round. On a cycle
-- they would rise for ever: where $rounds do not suffice, nothing is written.
WITH lifted AS MATERIALIZED (
    FROM (
        WITH RECURSIVE
        label AS MATERIALIZED (SELECT list(height ORDER BY id) AS height_of FROM eclass),
        edge AS MATERIALIZED (
            SELECT class, child, height_of[class] AS height, height_of[child] AS child_height
            FROM (SELECT class, unnest([c0, c1, c2, c3, c4]) AS child FROM enode WHERE NOT filtered), label
            WHERE child > 0
        ),
        violated AS MATERIALIZED (SELECT * FROM edge WHERE child_height >= height),
        above AS MATERIALIZED (
            SELECT class, child, height FROM edge WHERE height >= (SELECT min(height) FROM violated)
        ),
        risen(class, height, round) USING KEY (class, max(height), max(round)) AS (
            SELECT class, max(child_height) + 1, 1 FROM violated GROUP BY class
            UNION
            SELECT above.class, max(risen.height) + 1 AS height, max(risen.round) + 1
            FROM risen
            JOIN above ON above.child = risen.class
            LEFT JOIN recurring.risen AS known ON known.class = above.class
            WHERE risen.height >= coalesce(known.height, above.height) AND risen.round <= $rounds
            GROUP BY above.class
        )
        FROM risen
    )
),
written AS (
    UPDATE eclass SET height = lifted.height
    FROM lifted
    WHERE lifted.class = eclass.id AND (SELECT max(round) FROM lifted) <= $rounds
    RETURNING eclass.id
)
SELECT coalesce(max(round), 0) <= $rounds AS converged, (SELECT count(*) FROM written) AS classes FROM lifted
