"""The functions that rules may use in conditions and in the attributes of targets.

Importing this module makes them known: it is where others look them up.
"""

from relational_tensat.rules import tensor_functions, value_functions
from relational_tensat.rules.registry import Function, Inapplicable, functions, get_function

__all__ = [
    "Function",
    "Inapplicable",
    "functions",
    "get_function",
    "tensor_functions",
    "value_functions",
]
