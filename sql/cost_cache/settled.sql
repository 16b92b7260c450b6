-- The choice of a run whose choice has held, on exactly one device.
SELECT graph, choice, is_dearer, cost_ratio, has_held FROM settled_choice
WHERE run = $run AND setting = $setting
    AND kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
