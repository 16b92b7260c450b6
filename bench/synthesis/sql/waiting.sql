-- Candidates of a status, the shortest first: what is general is short, and proves what is not.
SELECT id, setting, source, target
FROM candidate WHERE status = $status
ORDER BY length(source) + length(target), id
