-- All rows of the cost cache, in an order that does not depend on when they were written.
SELECT configuration, kind, device, driver, libraries, protocol, median_us, p10_us, p90_us, samples, reason, date
FROM measured_cost
ORDER BY kind, device, driver, libraries, protocol, configuration
