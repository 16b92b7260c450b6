-- Keep the choice of a run; it replaces an earlier one.
INSERT OR REPLACE INTO settled_choice
VALUES ($run, $setting, $kind, $device, $driver, $libraries, $protocol, $graph, $choice, $is_dearer, $cost_ratio, $has_held)
