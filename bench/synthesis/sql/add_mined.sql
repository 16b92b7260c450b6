-- A window of a model.
INSERT INTO mined VALUES ($model, $cost_us, $whole_us, $setting, $window, $types)
