-- The classes and operators of e-nodes.
SELECT e.class, y.op
FROM enode AS e JOIN signature AS s ON s.id = e.signature JOIN symbol AS y ON y.id = s.symbol
WHERE e.id IN (SELECT unnest($ids))
ORDER BY e.id
