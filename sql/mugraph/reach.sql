-- One step of reachability: classes of e-nodes whose operands are reached.
INSERT INTO reached
SELECT DISTINCT a.tensors, n.class
FROM reached AS a
JOIN abstract AS n ON n.a = a.class
LEFT JOIN reached AS b ON b.tensors = a.tensors AND b.class = n.b
ANTI JOIN reached AS r ON r.tensors = a.tensors AND r.class = n.class
WHERE n.b = 0 OR b.class IS NOT NULL
