"""Numbers and names that Python and the kernels agree on."""

from __future__ import annotations

from relational_tensat.tensor.spellings import BINARY, FUNCTIONS

#: ``activate`` in kernels/common.cuh.
ACTIVATION_CODES = {"none": 0, "relu": 1, "sigmoid": 2, "tanh": 3, "gelu_tanh": 4}

_FUNCTION_CODES = {op: each.number for op, each in FUNCTIONS.items() if each.number is not None}
#: ``unary`` in kernels/map.cu; gelu's tanh approximation is an operator of its own there.
UNARY_CODES = {
    **dict(sorted(_FUNCTION_CODES.items(), key=lambda item: item[1])),
    "gelu_tanh": 11, "clip": 12, "smul": 13,
}  # fmt: skip

#: ``binary`` in kernels/map.cu.
BINARY_CODES = {op: each.number for op, each in BINARY.items() if each.number is not None}

#: ``compare`` in kernels/map.cu.
COMPARISON_CODES = {"less": 0, "less_or_equal": 1, "equal": 2}

#: ``decide`` in kernels/map.cu.
LOGIC_CODES = {"logical_and": 0, "logical_or": 1, "logical_not": 2}

#: ``reduce_rows`` and ``reduce_columns`` in kernels/rows.cu.
REDUCTION_CODES = {
    "reduce_sum": 0, "reduce_mean": 1, "reduce_max": 2, "reduce_min": 3, "reduce_prod": 4,
}  # fmt: skip

#: ``pad`` in kernels/move.cu.
PAD_MODE_CODES = {"constant": 0, "reflect": 1, "edge": 2}

#: ``pool`` in kernels/window.cu.
POOL_CODES = {"max_pool": 0, "avg_pool": 1}

#: ``cast`` in kernels/move.cu; it has no 64-bit unsigned integers.
DTYPE_CODES = {
    "float32": 0, "float16": 1, "bfloat16": 2, "float64": 3, "int64": 4, "int32": 5, "int16": 6,
    "int8": 7, "uint32": 8, "uint16": 9, "uint8": 10, "bool": 11,
}  # fmt: skip

#: The element types that kernels compute with, as C++ spells them.
FLOAT_TYPES = {"float32": "float", "float16": "f16", "bfloat16": "bf16"}

#: What kernels that move elements call an element of so many bytes.
MOVED_TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "u128"}

#: How float32 is multiplied: ``fp32`` exactly, ``tf32`` with operands rounded to 10 bits of mantissa.
MATH_MODES = ("fp32", "tf32")
