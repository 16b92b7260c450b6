-- Forget which graphs were timed whole on one device with one driver, set of libraries and protocol.
DELETE FROM raced_graph
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
