-- Weights and constants are known before inference; everything else is found from them.
UPDATE eclass SET weight_only = id IN (
    SELECT e.class
    FROM enode AS e JOIN signature AS s ON s.id = e.signature JOIN symbol AS y ON y.id = s.symbol
    WHERE y.op IN ('weight', 'fill') AND NOT e.filtered
)
