-- Merging switched off, for comparison: every evaluated candidate is a term of its own.
INSERT INTO term
SELECT
    $first + row_number() OVER (ORDER BY id) - 1, config, size, dims, axes, uses, loads, stage, class,
    value, list_append(parts, $first + row_number() OVER (ORDER BY id) - 1)
FROM evaluated
