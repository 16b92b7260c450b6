-- Forget the costs that were filled in from the source that did so last: their source is its name, alone or
-- followed by how it knows them.
DELETE FROM cost
USING meta
WHERE meta.key = 'cost_source' AND (cost.source = meta.value OR starts_with(cost.source, meta.value || ': '))
