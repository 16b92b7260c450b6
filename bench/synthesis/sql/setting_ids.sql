-- Settings in order.
SELECT id FROM setting ORDER BY id
