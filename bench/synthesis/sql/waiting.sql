-- Candidates of a status, those that promise most first.
SELECT id, setting, source, target, gain, models
FROM candidate WHERE status = $status
ORDER BY gain DESC, saves_us DESC, length(law), id
