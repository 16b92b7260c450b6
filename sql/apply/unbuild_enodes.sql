-- Remove the new e-nodes that no application up to the last one needs.
DELETE FROM enode
WHERE id >= $next_id AND NOT EXISTS (
    SELECT 1
    FROM (
        SELECT unnest(b) AS class FROM application WHERE id <= $last AND list_max(b) >= $next_id
    ) AS needed_class
    WHERE needed_class.class = enode.id
)
