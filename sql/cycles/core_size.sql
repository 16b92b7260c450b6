-- How many classes may lie on cycles.
SELECT count(DISTINCT class) FROM cycle_core
