"""Types of values: a tensor has an element type and a static shape; a tuple has several tensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.generic]
#: Attribute values are hashable and survive JSON: numbers, names, and tuples of these.
AttrValue: TypeAlias = int | float | str | bool | tuple["AttrValue", ...]
Attrs: TypeAlias = Mapping[str, AttrValue]
#: Canonical attributes as a hashable tuple of items in declared order.
AttrItems: TypeAlias = tuple[tuple[str, AttrValue], ...]

#: Bytes per element of the element types that operators compute with.
DTYPE_BYTES: dict[str, int] = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1,
    "bool": 1,
}  # fmt: skip

#: The element type of values that are no tensors (sequences, optionals): this and their ONNX type.
CARRIED = "opaque:"

FLOAT_DTYPES = frozenset({"float64", "float32", "float16", "bfloat16"})


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape of one tensor; ``()`` is a scalar."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements; element types that hold no numbers count as one byte."""
        return self.size * DTYPE_BYTES.get(self.dtype, 1)

    @property
    def is_float(self) -> bool:
        """Whether the elements are real numbers."""
        return self.dtype in FLOAT_DTYPES

    def with_shape(self, shape: tuple[int, ...]) -> TensorType:
        """Return the type of the same element type and another shape."""
        return TensorType(self.dtype, shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


#: A tuple of tensors: what ``split``, ``noop`` and operators of several outputs give.
TupleType: TypeAlias = tuple[TensorType, ...]
ValueType: TypeAlias = TensorType | TupleType


def tensors_of(value_type: ValueType) -> TupleType:
    """Return the tensors of a value type: itself for a tensor, the parts for a tuple."""
    return (value_type,) if isinstance(value_type, TensorType) else value_type


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return the NumPy element type that holds ``dtype``; bfloat16 is held as float32."""
    return np.dtype("float32" if dtype == "bfloat16" else dtype)
