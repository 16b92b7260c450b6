-- An e-node whose signature has no row, or a signature whose symbol or type has none.
SELECT e.id FROM enode AS e WHERE NOT EXISTS (SELECT 1 FROM signature WHERE signature.id = e.signature)
UNION ALL
SELECT e.id
FROM enode AS e JOIN signature AS s ON s.id = e.signature
WHERE NOT EXISTS (SELECT 1 FROM symbol WHERE symbol.id = s.symbol)
    OR NOT EXISTS (SELECT 1 FROM value_type WHERE value_type.id = s.type)
