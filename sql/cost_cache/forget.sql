-- Forget all that was measured on one device with one driver, set of libraries and protocol.
DELETE FROM measured_cost
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
