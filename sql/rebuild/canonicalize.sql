-- Rewrite the e-nodes whose class or children moved; the stamp makes these rows new to the matcher.
-- Class ids are dense: a list of all classes gives at once the answers of six joins.
UPDATE enode
SET
    class = parent_of[class], c0 = coalesce(parent_of[c0], 0), c1 = coalesce(parent_of[c1], 0),
    c2 = coalesce(parent_of[c2], 0), c3 = coalesce(parent_of[c3], 0), c4 = coalesce(parent_of[c4], 0),
    stamp = $stamp
FROM (SELECT list(parent ORDER BY id) AS parent_of FROM eclass)
WHERE parent_of[class] <> class OR parent_of[c0] <> c0 OR parent_of[c1] <> c1
    OR parent_of[c2] <> c2 OR parent_of[c3] <> c3 OR parent_of[c4] <> c4
