-- Two terms that the two parts of one tensor equal: rules of two sources, as TASO has them.
SELECT
    x.symbol, y.symbol, x.c0,
    p.symbol, p.c0, p.c1, p.c2,
    q.symbol, q.c0, q.c1, q.c2
FROM term AS x
JOIN symbol AS first ON first.setting = x.setting AND first.id = x.symbol AND first.part = 0
JOIN symbol AS second ON
    second.setting = x.setting AND second.part = 1 AND second.op = first.op AND second.attrs = first.attrs
JOIN term AS y ON y.setting = x.setting AND y.symbol = second.id AND y.c0 = x.c0
JOIN class AS p ON p.setting = x.setting AND p.fingerprint = x.fingerprint AND NOT p.of_window
JOIN class AS q ON q.setting = x.setting AND q.fingerprint = y.fingerprint AND NOT q.of_window
WHERE x.setting = $setting AND p.size > 0 AND q.size > 0 AND p.id <> q.id
ORDER BY x.size, x.id, y.id
