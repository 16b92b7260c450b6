-- Forget stand-ins for costs of computed operands that nobody had measured: bounds and estimates.
DELETE FROM computed_cost WHERE source IN (SELECT unnest($labels))
