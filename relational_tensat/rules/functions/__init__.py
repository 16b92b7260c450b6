"""The functions that rules may use in conditions and in the attributes of targets.

Importing this module makes them known: it is where others look them up.
"""

from relational_tensat.rules.functions import tensors as tensor_functions
from relational_tensat.rules.functions import values as value_functions
from relational_tensat.rules.functions.registry import (
    Function,
    Inapplicable,
    functions,
    get_function,
)

__all__ = [
    "Function",
    "Inapplicable",
    "functions",
    "get_function",
    "tensor_functions",
    "value_functions",
]
