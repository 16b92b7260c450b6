"""Generic operands of a rule, and both of its sides on them."""
