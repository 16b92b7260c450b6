-- Add seconds to those that a run and its repetitions have spent on something, on one device.
INSERT INTO run_seconds VALUES ($run, $what, $kind, $device, $driver, $libraries, $protocol, $seconds)
ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds
