-- Filter the closers that need no other closer for their cycle: those go in any case (the youngest
-- e-node of a cycle is dropped, and only e-nodes that stay may force that).
UPDATE enode SET filtered = true
WHERE id IN (
    WITH RECURSIVE reach(enode, class, goal) AS (
        SELECT core.enode, core.child, core.class FROM core JOIN closer USING (enode)
        UNION
        SELECT r.enode, core.child, r.goal
        FROM reach AS r
        JOIN core ON core.class = r.class
        WHERE core.enode < r.enode AND r.class <> r.goal
            AND NOT EXISTS (SELECT 1 FROM closer WHERE closer.enode = core.enode)
    )
    SELECT enode FROM reach WHERE class = goal
)
