"""The few words in which operators say what they are to other rooms: kernels, families, uses.

``activate`` has the activations that conv, matmul and pool operators can have fused.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError, nearest

#: What runs when an operator is applied:
#: nothing: what is there is used as it is (leaves, tuples and their parts, identities);
#: view: the same memory under another shape, free on every device;
#: copy: elements move to a tensor of their own, which costs its bytes. No consumer reads a split, slice
#: or transpose in place: all operands are contiguous (a profile may say otherwise, see ``free`` there);
#: compute: a kernel that computes.
KERNELS = ("nothing", "view", "copy", "compute")


#: The value of the attribute ``act`` of an operator without an activation.
NO_ACTIVATION = "none"


class Family(StrEnum):
    """Operators whose kernels are alike: their times are fitted together."""

    CONVOLUTION = "convolution"
    MATRIX_PRODUCT = "matrix product"
    POOLING = "pooling"
    NORMALIZATION = "normalization"
    REDUCTION = "reduction"
    ELEMENT_WISE = "element-wise"
    #: Whose kernel is not known: it depends on attributes that only ONNX understands.
    UNKNOWN = "unknown"
    COPY = "copy"
    VIEW = "view"
    NOTHING = "nothing"

    @property
    def has_products(self) -> bool:
        """Whether results are sums of products, which tensor cores compute where they are allowed."""
        return self in (Family.CONVOLUTION, Family.MATRIX_PRODUCT)


class Use(Enum):
    """The use of an operand by an operator: it decides which random numbers make sense."""

    #: Computes with it; numbers of any sign and size make sense.
    VALUE = "value"
    #: Only moves its elements: the use of the result decides.
    MOVED = "moved"
    #: Puts its elements beside those of other operands.
    JOINED = "joined"
    #: Adds it.
    ADDED = "added"
    #: Takes exponentials of it, or its largest element: -inf and the lowest number leave elements out.
    SCORE = "score"
    #: Makes a condition of it, or is told by it what to do: 0 and 1 make sense.
    CONDITION = "condition"
    #: Multiplies its elements with each other.
    MULTIPLIED = "multiplied"
    #: Divides by it, or takes its root or logarithm: numbers away from 0 and above it.
    POSITIVE = "positive"
    #: Takes it for an exponent.
    EXPONENT = "exponent"
    #: Takes its integers for positions on an axis (``Operator.index_range``).
    INDEX = "index"
    #: Nobody but ONNX knows: data that a graph has for it stays as it is.
    STRUCTURE = "structure"


#: Their names: those of operators.
ACTIVATIONS = (NO_ACTIVATION, "relu", "sigmoid", "tanh")


def activate(name: str, array: Any) -> Any:
    """Apply a fused activation to an array."""
    match name:
        case "none":
            return array
        case "relu":
            return np.maximum(array, 0)
        case "sigmoid":
            decay = np.exp(-np.abs(array))  # never overflows
            return np.where(array >= 0, 1.0, decay) / (1.0 + decay)
        case "tanh":
            return np.tanh(array)
        case _:
            raise ShapeError(f"unknown activation {name!r}{nearest(name, ACTIVATIONS)}")
