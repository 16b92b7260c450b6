-- Filter the closers that need no other closer for their cycle: those go in any case (the youngest
-- e-node of a cycle is dropped, and only e-nodes that stay may force that).
UPDATE enode SET filtered = true
WHERE id IN (
    WITH RECURSIVE
    old AS (SELECT * FROM region WHERE NOT EXISTS (SELECT 1 FROM closer WHERE closer.enode = region.enode)),
    reach(enode, class, goal) AS (
        SELECT region.enode, region.child, region.class FROM region JOIN closer USING (enode)
        UNION
        SELECT r.enode, old.child, r.goal
        FROM reach AS r JOIN old ON old.class = r.class
        WHERE old.enode < r.enode AND r.class <> r.goal
    )
    SELECT enode FROM reach WHERE class = goal
)
