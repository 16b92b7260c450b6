-- The rows of the cost cache for a batch of configurations, for exactly one device, driver, libraries and protocol.
SELECT configuration, median_us, p10_us, p90_us, samples, reason
FROM measured_cost
WHERE kind = $kind AND device = $device AND driver = $driver AND libraries = $libraries
    AND protocol = $protocol AND configuration IN (SELECT unnest($configurations::VARCHAR[]))
