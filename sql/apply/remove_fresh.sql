-- Remove the new e-nodes again: they are too many.
DELETE FROM enode WHERE id >= $next_id
