-- The unions that rules asked for, in order: their instance, the classes that it was applied to, and the source.
SELECT rule, instance, source, bindings FROM union_log WHERE rule > 0 ORDER BY rowid
