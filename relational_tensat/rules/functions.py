"""The functions that rules may use in conditions and in the attributes of targets.

Importing this module makes them known: it is where others look them up.
"""

from relational_tensat.rules import (
    dtype_functions,
    list_functions,
    tensor_functions,
    value_functions,
)
from relational_tensat.rules.registry import Function, Inapplicable, functions, get_function

__all__ = [
    "Function",
    "Inapplicable",
    "dtype_functions",
    "functions",
    "get_function",
    "list_functions",
    "tensor_functions",
    "value_functions",
]
