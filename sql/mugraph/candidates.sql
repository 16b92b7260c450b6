-- The candidates of one size, in an order that is the same each time.
SELECT * FROM candidate WHERE size = $size ORDER BY config, op, name, variable, a, b
