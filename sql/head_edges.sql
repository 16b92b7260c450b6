-- Which heads stand below which, at which operand, and whether a row written since a clock is involved; and
-- each head alone (position -1). Patterns that need other pairs cannot match; those without a change have
-- no new match.
SELECT parent.head, parent.position, child.head, bool_or(parent.stamp >= $since OR child.stamp >= $since)
FROM (
    SELECT
        head, stamp, unnest([c0, c1, c2, c3, c4]) AS child, unnest([0, 1, 2, 3, 4]) AS position
    FROM enode WHERE head > 0 AND NOT filtered
) AS parent
JOIN enode AS child ON child.class = parent.child
WHERE child.head > 0 AND NOT child.filtered
GROUP BY parent.head, parent.position, child.head
UNION ALL
SELECT head, -1, 0, bool_or(stamp >= $since) FROM enode WHERE NOT filtered GROUP BY head
