-- An application puts its roots above its variables. That can close a cycle only if a root is (or is
-- below) a variable's class, which heights rule out for almost all.
CREATE OR REPLACE TEMP TABLE suspect AS
SELECT DISTINCT v.id AS variable, r.id AS root, r.height AS root_height
FROM (
    SELECT unnest(b) AS variable, root0 AS root FROM application
    UNION
    SELECT unnest(b), root1 FROM application WHERE root1 > 0
) AS s
JOIN eclass AS v ON v.id = s.variable
JOIN eclass AS r ON r.id = s.root
WHERE v.id = r.id OR v.height > r.height
