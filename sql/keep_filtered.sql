-- The e-node kept for a congruent group is filtered only if the whole group was.
UPDATE enode SET filtered = congruent.filtered
FROM congruent WHERE enode.id = congruent.kept AND enode.filtered <> congruent.filtered
