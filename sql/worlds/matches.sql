-- Matches of the sources of multi-pattern rules, with the columns that the rules need.
SELECT * EXCLUDE (root, stamp) FROM match
