-- Every class that the unions of a round name, with the smallest id of its component: labels spread
-- along the pairs until none gets smaller (each step only from classes whose label moved).
CREATE OR REPLACE TEMP TABLE moved AS
WITH RECURSIVE
link AS (
    SELECT a, b FROM union_pair WHERE round = $round UNION ALL SELECT b, a FROM union_pair WHERE round = $round
),
component(node, label) USING KEY (node) AS (
    SELECT a, least(a, min(b)) FROM link GROUP BY a
    UNION
    SELECT link.b, min(source.label)
    FROM component AS source
    JOIN link ON link.a = source.node
    JOIN recurring.component AS neighbour ON neighbour.node = link.b
    WHERE source.label < neighbour.label
    GROUP BY link.b
)
SELECT node AS old, label AS new FROM component WHERE node <> label
