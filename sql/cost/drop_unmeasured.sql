-- Forget stand-ins for costs that nobody had measured: bounds and estimates.
DELETE FROM cost WHERE source IN (SELECT unnest($labels))
