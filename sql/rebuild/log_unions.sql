-- Append the unions of the phase to the log.
INSERT INTO union_log SELECT $iteration, rule, a, b, instance, source, bindings FROM union_pair
