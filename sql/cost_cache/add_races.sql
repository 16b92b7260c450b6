-- Add outcomes of races.
INSERT OR REPLACE INTO race_outcome
SELECT
    unnest($model::VARCHAR[]), unnest($before_us::VARCHAR[]), unnest($after_us::VARCHAR[]),
    $kind, $device, $driver, $libraries, $protocol,
    unnest($speedup::DOUBLE[]), unnest($error::DOUBLE[]), $date
