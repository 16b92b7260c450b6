-- How many of a batch of configurations were measured on the same device with another driver, other libraries
-- or another protocol: times that are not used.
SELECT count(DISTINCT configuration)
FROM measured_cost
WHERE kind = $kind AND device = $device AND reason IS NULL
    AND NOT (driver = $driver AND libraries = $libraries AND protocol = $protocol)
    AND configuration IN (SELECT unnest($configurations::VARCHAR[]))
