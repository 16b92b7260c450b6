-- The last iteration in which a rule of so many sources matched, 0 if none did.
SELECT coalesce(max(m.iteration), 0)
FROM match_log AS m JOIN rule AS r ON r.id = m.rule
WHERE r.sources = $sources
