-- The seconds of measuring for a run on exactly one device.
SELECT seconds FROM measuring_spent
WHERE run = $run
    AND kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
