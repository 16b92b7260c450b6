-- What a kernel in C took, for exactly one compiler, device, driver, libraries and protocol.
SELECT median_us, p10_us, p90_us, samples
FROM compiled_cost
WHERE code = $code AND compiler = $compiler AND kind = $kind AND device = $device AND driver = $driver
    AND libraries = $libraries AND protocol = $protocol
