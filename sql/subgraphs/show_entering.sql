-- E-nodes that came into the subgraph are matched from now on; the stamp makes these rows new to the matcher.
UPDATE enode SET filtered = false, stamp = $stamp WHERE id IN (SELECT enode FROM entering)
