-- The inputs of a setting.
SELECT inputs FROM setting WHERE id = $id
