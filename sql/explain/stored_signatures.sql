-- Every signature: operator, attributes (JSON), types of its operands and of its result by id.
SELECT s.id, y.op, y.attrs, s.operands, s.type
FROM signature AS s JOIN symbol AS y ON y.id = s.symbol
ORDER BY s.id
