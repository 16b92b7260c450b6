-- The first application that each new e-node is built for (asked where the node limit may be exceeded).
CREATE OR REPLACE TEMP TABLE built AS
SELECT class AS id, min(application) AS application
FROM (SELECT id AS application, unnest(b) AS class FROM application)
WHERE class >= $next_id
GROUP BY class
