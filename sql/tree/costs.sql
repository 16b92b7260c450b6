-- What worlds cost that were extracted from.
FROM tree_cost
