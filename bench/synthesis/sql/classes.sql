-- The first term of each class of a setting.
SELECT id, symbol, c0, c1, c2 FROM class WHERE setting = $setting
