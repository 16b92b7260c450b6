"""Between ONNX's types and tensors and the graph's.

Sequences, optionals, maps and tensors whose shape depends on data have no static shape. Each is carried
as an element type of its own, ``opaque:`` and the serialized ONNX type: only opaque nodes take such
values, and they come out as they went in.
"""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import onnx

from relational_tensat.base.errors import ModelError
from relational_tensat.formats.arrays import bfloat16_bits_to_float, compact, float_to_bfloat16_bits
from relational_tensat.tensor import DTYPE_BYTES, TensorType, Weight, numpy_dtype
from relational_tensat.tensor.types import CARRIED, FLOAT_DTYPES, Array

#: Sparse tensors that would be larger stay what they are.
_DENSE_BYTES = 1 << 28
#: The type of a value of which nothing is known, as a custom operator gives.
UNKNOWN = TensorType(CARRIED, ())
#: ONNX's names where they are not the graph's, in lower case.
_RENAMED = {"float": "float32", "double": "float64"}
_ONNX_NAMES = {ours: theirs for theirs, ours in _RENAMED.items()}


class TensorDataError(ModelError):
    """A tensor's data does not fit its type."""


def dtype_name(code: int) -> str:
    """Return the graph's name of an ONNX element type, e.g. float32, bfloat16, string."""
    name = str(onnx.TensorProto.DataType.Name(code)).lower()
    return _RENAMED.get(name, name)


def dtype_code(dtype: str) -> int:
    """Return the code of an ONNX element type.

    Raises:
        ModelError: ONNX has no such element type.
    """
    try:
        return int(onnx.TensorProto.DataType.Value(_ONNX_NAMES.get(dtype, dtype).upper()))
    except ValueError:
        raise ModelError(f"ONNX has no element type {dtype!r}") from None


def is_numeric(kind: TensorType) -> bool:
    """Whether operators can compute with the type; others only pass through opaque nodes."""
    return kind.dtype in DTYPE_BYTES


def is_carried(kind: TensorType) -> bool:
    """Whether the type stands for what is no tensor of static shape."""
    return kind.dtype.startswith(CARRIED)


def is_tensor_of_unknown_shape(kind: TensorType) -> bool:
    """Whether the type stands for a tensor whose shape depends on data."""
    return is_carried(kind) and to_type_proto(kind).HasField("tensor_type")


def holds_floats(kind: TensorType) -> bool:
    """Whether what is carried holds floats, as a sequence of tensors or a map may."""
    return _holds_floats(to_type_proto(kind))


def _holds_floats(proto: onnx.TypeProto) -> bool:
    match proto.WhichOneof("value"):
        case "tensor_type" | "sparse_tensor_type" as field:
            code = getattr(proto, field).elem_type
            return code != onnx.TensorProto.UNDEFINED and dtype_name(code) in FLOAT_DTYPES
        case "sequence_type" | "optional_type" as field:
            return _holds_floats(getattr(proto, field).elem_type)
        case "map_type":
            return _holds_floats(proto.map_type.value_type)
    return False


def element_type(kind: TensorType) -> str:
    """Return the element type of a tensor, also where its shape is not known; "" where it is no tensor."""
    if not is_carried(kind):
        return kind.dtype
    proto = to_type_proto(kind)
    return dtype_name(proto.tensor_type.elem_type) if proto.HasField("tensor_type") else ""


def is_fixed(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a dimension has a size; some exporters write -1 for none."""
    return bool(dim.HasField("dim_value") and dim.dim_value >= 0)


def from_type_proto(proto: onnx.TypeProto) -> TensorType | None:
    """Return the graph's type of an ONNX type; None when ONNX has none."""
    if not proto.WhichOneof("value"):
        return None
    if proto.HasField("tensor_type"):
        tensor = proto.tensor_type
        if tensor.elem_type == onnx.TensorProto.UNDEFINED:
            return None
        dims = tensor.shape.dim
        if tensor.HasField("shape") and all(map(is_fixed, dims)):
            return TensorType(dtype_name(tensor.elem_type), tuple(dim.dim_value for dim in dims))
    text = base64.b64encode(proto.SerializeToString(deterministic=True)).decode("ascii")
    return TensorType(CARRIED + text, ())


def to_type_proto(kind: TensorType) -> onnx.TypeProto:
    """Return the ONNX type of a graph's type; the inverse of ``from_type_proto``."""
    if is_carried(kind):
        return onnx.TypeProto.FromString(base64.b64decode(kind.dtype.removeprefix(CARRIED)))
    return onnx.helper.make_tensor_type_proto(dtype_code(kind.dtype), kind.shape)


def to_value_info(name: str, kind: TensorType) -> onnx.ValueInfoProto:
    """Return a name and its type as ONNX declares them."""
    return onnx.helper.make_value_info(name, to_type_proto(kind))


def array_of(tensor: onnx.TensorProto) -> Array:
    """Return a tensor's elements; bfloat16 as float32; a broadcast view when all are equal.

    Raises:
        TensorDataError: the elements are not as many as the shape has, or of no known type.
    """
    try:
        array: Any = onnx.numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        name = tensor.name or "(no name)"
        raise TensorDataError(f"tensor {name!r} of shape {list(tensor.dims)}: {error}") from None
    if tensor.data_type == onnx.TensorProto.BFLOAT16:
        if array.dtype == np.uint16:  # older releases give the bits
            array = bfloat16_bits_to_float(array)
        array = np.asarray(array, np.float32)
    return compact(np.asarray(array))


def dense_weight(sparse: onnx.SparseTensorProto) -> Weight | None:
    """Return a sparse tensor with all its zeros; None where these are too many, or no numbers.

    Raises:
        TensorDataError: indices are not those of elements of its shape.
    """
    name, shape = sparse.values.name, tuple(sparse.dims)
    kind = TensorType(type_of(sparse.values).dtype, shape)
    if not is_numeric(kind) or min(shape, default=0) < 0 or kind.nbytes > _DENSE_BYTES:
        return None
    values, indices = array_of(sparse.values), array_of(sparse.indices)
    dense = np.zeros(kind.size, values.dtype)
    try:
        if indices.ndim == 2:  # a row for each value; else positions among all elements
            indices = np.ravel_multi_index(tuple(indices.T), shape)
        if indices.size and indices.min() < 0:
            raise IndexError("a negative index")
        dense[indices] = values
    except (ValueError, IndexError, TypeError) as error:
        raise TensorDataError(f"sparse tensor {name!r} of shape {list(shape)}: {error}") from None
    return Weight(kind, dense.reshape(shape))


def type_of(tensor: onnx.TensorProto) -> TensorType:
    """Return the type of a tensor that has a value.

    Raises:
        TensorDataError: its shape has negative sizes.
    """
    if any(size < 0 for size in tensor.dims):
        raise TensorDataError(f"tensor {tensor.name!r} has the shape {list(tensor.dims)}")
    return TensorType(dtype_name(tensor.data_type), tuple(tensor.dims))


def to_tensor(name: str, array: Array, dtype: str) -> onnx.TensorProto:
    """Return elements as an ONNX tensor of the declared element type."""
    tensor = onnx.TensorProto(name=name, data_type=dtype_code(dtype), dims=array.shape)
    tensor.raw_data = stored(array, dtype).tobytes()
    return tensor


def stored(array: Array, dtype: str) -> Array:
    """Return elements as ONNX stores those of an element type; the same array where it has them so."""
    if dtype == "bfloat16":
        array = float_to_bfloat16_bits(array)
    else:
        array = array.astype(numpy_dtype(dtype), copy=False)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return np.asarray(little, order="C")
