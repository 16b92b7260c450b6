-- The unions that rules asked for, in order: their instance, what it was applied to, and at which source.
SELECT rule, instance, source, bindings FROM union_log WHERE rule > 0 ORDER BY rowid
