-- The seconds that a run and its repetitions have spent on something, on exactly one device.
SELECT seconds FROM run_seconds
WHERE run = $run AND what = $what
    AND kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
