-- Forget the choices of runs on one device with one driver, set of libraries and protocol.
DELETE FROM settled_choice
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
