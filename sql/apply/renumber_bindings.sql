-- Name new classes in the bindings of applications by the ids of new_id.
UPDATE application
SET b = list_transform(b, lambda c: CASE WHEN c < $next_id THEN c ELSE new_of[c - $next_id + 1] END)
FROM new_id
WHERE list_max(b) >= $next_id
