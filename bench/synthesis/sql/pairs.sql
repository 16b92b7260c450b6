-- Pairs of one fingerprint: each term with the first term of its class, or, of a value that is no class, with
-- the first term that has it. Windows are terms of any size; what equals them is what was enumerated.
WITH first_term AS (
    SELECT fingerprint, arg_min(t, (size, id)) AS t
    FROM term AS t
    WHERE setting = $setting AND window_id < 0
    GROUP BY fingerprint
)
SELECT
    t.symbol, t.c0, t.c1, t.c2,
    coalesce(c.symbol, f.t.symbol), coalesce(c.c0, f.t.c0), coalesce(c.c1, f.t.c1), coalesce(c.c2, f.t.c2),
    t.window_id
FROM term AS t
LEFT JOIN class AS c ON c.setting = t.setting AND c.fingerprint = t.fingerprint AND NOT c.of_window
LEFT JOIN first_term AS f ON f.fingerprint = t.fingerprint
WHERE t.setting = $setting
    AND (t.window_id >= 0 OR NOT $windows_only)
    AND (c.id IS NOT NULL OR f.t.id <> t.id)
    AND (t.symbol, t.c0, t.c1, t.c2) <> (
        coalesce(c.symbol, f.t.symbol), coalesce(c.c0, f.t.c0), coalesce(c.c1, f.t.c1), coalesce(c.c2, f.t.c2)
    )
ORDER BY t.size, t.id
