-- The rules of a run: their texts, and where the bindings of their applications have what (see union_log).
SELECT id, text, name, file, line, operands, leaves FROM rule
