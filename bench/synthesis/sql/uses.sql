-- Where models have the windows of a setting.
SELECT window_id, model, cost_us, whole_us, types FROM mined WHERE setting = $setting
