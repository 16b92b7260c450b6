-- E-nodes an operand of which has no e-node left to extract are not extracted either. Returns them.
UPDATE enode SET filtered = true
WHERE NOT filtered AND list_has_any(
    [c0, c1, c2, c3, c4],
    (SELECT list(class) FROM (SELECT class FROM enode GROUP BY class HAVING bool_and(filtered)))
)
RETURNING id
