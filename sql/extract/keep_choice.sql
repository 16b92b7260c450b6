-- Keep a choice, its e-nodes in the order of $ids (children first).
INSERT INTO kept_choice
SELECT k.position, e.signature, e.c0, e.c1, e.c2, e.c3, e.c4
FROM (SELECT unnest($ids) AS id, generate_subscripts($ids, 1) AS position) AS k
JOIN enode AS e ON e.id = k.id
