-- Add outcomes of races.
INSERT OR REPLACE INTO race_outcome BY NAME
SELECT
    unnest($model::VARCHAR[]) AS model,
    unnest($before_us::VARCHAR[]) AS before_us, unnest($after_us::VARCHAR[]) AS after_us,
    $kind AS kind, $device AS device, $driver AS driver, $libraries AS libraries, $protocol AS protocol,
    unnest($speedup::DOUBLE[]) AS speedup, unnest($error::DOUBLE[]) AS error, $date AS date,
    $race_version AS race_version
