-- New ids without the gaps that e-nodes taken away have left, in the same order: a list over all ids from
-- next_id on, so that an id's new one stands at id - next_id + 1.
CREATE OR REPLACE TEMP TABLE new_number AS
SELECT list(new ORDER BY old) AS new_of
FROM (
    SELECT given.old, ($next_id - 1 + count(e.id) OVER (ORDER BY given.old))::INTEGER AS new
    FROM range($next_id, $end_id) AS given(old) LEFT JOIN enode AS e ON e.id = given.old
)
