-- New ids without the gaps that removed e-nodes have left, in the same order: a list over all ids from next_id
-- on, so that an id's new one is at index id - next_id + 1.
CREATE OR REPLACE TEMP TABLE new_id AS
SELECT list(new ORDER BY old) AS new_of
FROM (
    SELECT old_id.id AS old, ($next_id - 1 + count(e.id) OVER (ORDER BY old_id.id))::INTEGER AS new
    FROM range($next_id, $end_id) AS old_id(id) LEFT JOIN enode AS e ON e.id = old_id.id
)
