-- Add seconds of measuring to those of a run on one device.
INSERT INTO measuring_spent VALUES ($run, $kind, $device, $driver, $libraries, $protocol, $seconds)
ON CONFLICT DO UPDATE SET seconds = seconds + excluded.seconds
