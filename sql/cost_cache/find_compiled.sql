-- The times of code, for exactly one compiler, device, driver, libraries and protocol.
SELECT code, median_us, p10_us, p90_us, samples
FROM compiled_cost
WHERE code IN (SELECT unnest($codes::VARCHAR[])) AND compiler = $compiler
    AND kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries AND protocol = $protocol
