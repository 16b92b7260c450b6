-- Add rows to the cost cache; where there is one for a configuration and device, the older stays.
INSERT INTO measured_cost
SELECT
    unnest($configuration::VARCHAR[]), unnest($kind::VARCHAR[]), unnest($device::VARCHAR[]),
    unnest($driver::VARCHAR[]), unnest($libraries::VARCHAR[]), unnest($protocol::INTEGER[]),
    unnest($median_us::DOUBLE[]), unnest($p10_us::DOUBLE[]), unnest($p90_us::DOUBLE[]),
    unnest($samples::INTEGER[]), unnest($reason::VARCHAR[]), unnest($date::VARCHAR[])
ON CONFLICT DO NOTHING
