-- All e-nodes of the universe are extracted from.
UPDATE enode SET filtered = false WHERE filtered
