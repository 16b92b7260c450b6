-- The rules of a run: their texts, and the meaning of their applications' bindings (see union_log).
SELECT id, text, name, file, line, operands, leaves FROM rule
