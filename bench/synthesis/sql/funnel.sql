-- How many there are of what, from terms to rules.
SELECT 'windows of models', count(*) FROM mined
UNION ALL SELECT 'distinct windows', count(DISTINCT (setting, window_id)) FROM mined
UNION ALL SELECT 'settings', count(*) FROM setting
UNION ALL SELECT 'terms', count(*) FROM term
UNION ALL SELECT 'classes', count(*) FROM class
UNION ALL SELECT 'laws, distinct up to names', count(*) FROM candidate
UNION ALL (SELECT status, count(*) FROM candidate GROUP BY status ORDER BY 2 DESC, 1)
