-- A setting.
INSERT INTO setting VALUES ($id, $inputs, $exact)
