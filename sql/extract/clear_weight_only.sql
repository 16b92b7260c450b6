-- What needs no operands and is known before inference: weights and constants. All else is derived from them.
UPDATE eclass SET weight_only = id IN (
    SELECT e.class
    FROM enode AS e JOIN signature AS s ON s.id = e.signature JOIN symbol AS y ON y.id = s.symbol
    WHERE y.foldable AND y.arity = 0 AND NOT e.filtered
)
