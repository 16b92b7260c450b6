-- A rule that was found.
INSERT INTO found_rule VALUES ($id, $text, $evidence, $trials)
