-- Keep what a run chose; what it chose before is replaced.
INSERT OR REPLACE INTO settled_choice
VALUES ($run, $setting, $kind, $device, $driver, $libraries, $protocol, $graph, $choice, $is_dearer, $cost_ratio, $has_held)
