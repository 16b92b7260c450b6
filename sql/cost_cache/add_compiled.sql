-- Add what a kernel in C took; where another process was first, its time stays.
INSERT INTO compiled_cost
VALUES (
    $code, $compiler, $kind, $device, $driver, $libraries, $protocol, $median_us, $p10_us, $p90_us, $samples, $date
)
ON CONFLICT DO NOTHING
