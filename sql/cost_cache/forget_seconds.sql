-- Forget how long was measured and raced for runs on one device with one driver, set of libraries and protocol.
DELETE FROM run_seconds
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
