-- Add graphs that were timed whole; where one was before in the same setting, the newer times hold.
INSERT OR REPLACE INTO raced_graph
SELECT
    $original, unnest($graph::VARCHAR[]), $setting, $kind, $device, $driver, $libraries, $protocol,
    unnest($speedup::DOUBLE[]), unnest($low::DOUBLE[]), unnest($high::DOUBLE[]), unnest($heats::INTEGER[]),
    unnest($is_final::BOOLEAN[]),
    unnest($noise::DOUBLE[]), unnest($noise_low::DOUBLE[]), unnest($noise_high::DOUBLE[]), unnest($noise_heats::INTEGER[]),
    unnest($date::VARCHAR[])
