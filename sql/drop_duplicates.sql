-- Of equal e-nodes the oldest that is kept by the cycle filter stays (the oldest, if all are filtered).
DELETE FROM enode WHERE id IN (
    SELECT id
    FROM (
        SELECT
            id,
            row_number() OVER (PARTITION BY signature, c0, c1, c2, c3, c4 ORDER BY filtered, id) AS place
        FROM enode
        SEMI JOIN (SELECT signature, c0 FROM enode WHERE stamp = $stamp) AS changed USING (signature, c0)
    )
    WHERE place > 1
)
