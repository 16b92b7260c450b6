-- An operator with its attributes.
INSERT INTO symbol VALUES ($setting, $id, $op, $attrs, $part)
