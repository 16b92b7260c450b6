-- The graphs that were timed whole against an original, on exactly one device and in one setting.
SELECT graph, speedup, low, high, heats, is_final, noise, noise_low, noise_high, noise_heats, date
FROM raced_graph
WHERE original = $original AND setting = $setting
    AND kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
