-- Give new e-nodes, each in a class of its own, the ids of new_id; their children may be new, too.
UPDATE enode
SET
    id = new_of[id - $next_id + 1], class = new_of[id - $next_id + 1],
    c0 = CASE WHEN c0 < $next_id THEN c0 ELSE new_of[c0 - $next_id + 1] END,
    c1 = CASE WHEN c1 < $next_id THEN c1 ELSE new_of[c1 - $next_id + 1] END,
    c2 = CASE WHEN c2 < $next_id THEN c2 ELSE new_of[c2 - $next_id + 1] END,
    c3 = CASE WHEN c3 < $next_id THEN c3 ELSE new_of[c3 - $next_id + 1] END,
    c4 = CASE WHEN c4 < $next_id THEN c4 ELSE new_of[c4 - $next_id + 1] END
FROM new_id
WHERE id >= $next_id
