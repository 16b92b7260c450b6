-- Forget the costs of computed operands: all are filled in from the source that did so last.
DELETE FROM computed_cost
