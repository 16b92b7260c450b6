"""The tensor graph and its types."""

from relational_tensat.tensor.graph import Graph, Node, Weight, build_graph
from relational_tensat.tensor.types import (
    DTYPE_BYTES,
    Array,
    Attrs,
    AttrValue,
    TensorType,
    TupleType,
    ValueType,
    numpy_dtype,
    tensors_of,
)

__all__ = [
    "DTYPE_BYTES",
    "Array",
    "AttrValue",
    "Attrs",
    "Graph",
    "Node",
    "TensorType",
    "TupleType",
    "ValueType",
    "Weight",
    "build_graph",
    "numpy_dtype",
    "tensors_of",
]
