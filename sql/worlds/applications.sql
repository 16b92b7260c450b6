-- The applications of a universe, in the order in which they were found.
SELECT rule, instance, state, sources, targets, bindings FROM universe_application ORDER BY id
