-- Forget how long was measured for runs on one device with one driver, set of libraries and protocol.
DELETE FROM measuring_spent
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
