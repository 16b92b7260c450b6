-- Per rule with more pairs than the first batch takes: the class of the first root down to which there are so
-- many. The pairs of higher ones, and its own, come first; see applications of multi-pattern rules.
CREATE OR REPLACE TEMP TABLE pair_cut AS
SELECT rule, max(root0) AS root0
FROM (
    SELECT rule, root0, sum(pairs) OVER (PARTITION BY rule ORDER BY root0 DESC) AS so_far
    FROM (SELECT rule, root0, count(*) AS pairs FROM pair GROUP BY rule, root0)
)
WHERE so_far >= $most
GROUP BY rule
