-- Forget the times of kernels in C on one device with one driver, set of libraries and protocol.
DELETE FROM compiled_cost
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
