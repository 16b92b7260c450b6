-- What became of each candidate: found ones first, then those that promise most.
SELECT law, status, gain, json_keys(models), note
FROM candidate
ORDER BY status <> 'found', gain DESC, saves_us DESC, length(law), id
LIMIT $most
