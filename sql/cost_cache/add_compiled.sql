-- Add the times of code; if another process was first, its time stays.
INSERT INTO compiled_cost
SELECT
    unnest($code::VARCHAR[]), $compiler, $kind, $device, $driver, $libraries, $protocol,
    unnest($median_us::DOUBLE[]), unnest($p10_us::DOUBLE[]), unnest($p90_us::DOUBLE[]), unnest($samples::INTEGER[]),
    $date
ON CONFLICT DO NOTHING
