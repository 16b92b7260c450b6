-- Forget the outcomes of all races on one device with one driver, set of libraries and protocol.
DELETE FROM race_outcome
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
