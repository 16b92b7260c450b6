-- The unions that rules asked for, in order, $most of them at most: place, rule, instance, bindings.
SELECT row_number() OVER (ORDER BY rowid) AS place, rule, instance, bindings
FROM union_log WHERE rule > 0 ORDER BY place LIMIT $most
