-- The outcomes of all races of one version on exactly one device, driver, libraries and protocol.
SELECT model, before_us, after_us, speedup, error
FROM race_outcome
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
    AND race_version = $race_version
ORDER BY ALL
