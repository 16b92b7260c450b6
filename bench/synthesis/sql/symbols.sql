-- Operators with their attributes.
SELECT id, op, attrs, part FROM symbol WHERE setting = $setting
