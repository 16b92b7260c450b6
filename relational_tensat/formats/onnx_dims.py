"""Dynamic dimensions: found in the inputs of an ONNX model, fixed by what the caller gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx

from relational_tensat.base.errors import InputError, UsageError, nearest
from relational_tensat.formats.onnx_types import is_fixed


def fix_dims(
    inputs: Sequence[onnx.ValueInfoProto],
    values: Sequence[onnx.ValueInfoProto],
    dims: Mapping[str, int],
    where: str,
) -> None:
    """Give the dynamic dimensions of ``inputs`` their sizes, in place.

    Args:
        inputs: the graph's inputs.
        values: other declarations, where named dimensions get their sizes too.
        dims: sizes by the dimension's name, or by ``INPUT:AXIS``.

    Raises:
        UsageError: a name in ``dims`` is none of the model's, or a size is negative.
        InputError: a dimension stays without a size.
    """
    check_names(inputs, dims, where)
    for _, axis, dim in [*_axes(inputs), *_axes(values)]:
        size = dims.get(axis, dims.get(dim.dim_param)) if _is_dynamic(dim) else None
        if size is not None:
            dim.dim_value = size
    for name, axis, dim in _axes(inputs):
        if _is_dynamic(dim):
            key = dim.dim_param or axis
            raise InputError(
                f"{where}: dimension {key!r} of input {name!r} is dynamic; fix it: --dim {key}=1"
            )


def check_names(inputs: Sequence[onnx.ValueInfoProto], dims: Mapping[str, int], where: str) -> None:
    """Check that what sizes are given for are dynamic dimensions of the inputs.

    Raises:
        UsageError: a name in ``dims`` is none of the model's, or a size is negative or another one.
    """
    dimensions: dict[str, onnx.TensorShapeProto.Dimension] = {}
    for _, axis, dim in _axes(inputs):
        dimensions[axis] = dim
        if _is_dynamic(dim) and dim.dim_param:
            dimensions[dim.dim_param] = dim
    dynamic = {key: dim for key, dim in dimensions.items() if _is_dynamic(dim)}
    listed = list(dict.fromkeys(dim.dim_param or key for key, dim in dynamic.items()))
    for key, size in dims.items():
        if size < 0:
            raise UsageError(f"dimension {key!r} = {size}, expected a size")
        if key not in dimensions:
            hint = nearest(key, dynamic) or (
                f"; it has {', '.join(listed)}" if listed else "; all its dimensions are fixed"
            )
            raise UsageError(f"{where}: has no dynamic dimension {key!r}{hint}")
        if not _is_dynamic(dimensions[key]) and dimensions[key].dim_value != size:
            raise UsageError(f"{where}: dimension {key!r} is fixed to {dimensions[key].dim_value}")


def _axes(
    values: Sequence[onnx.ValueInfoProto],
) -> Iterator[tuple[str, str, onnx.TensorShapeProto.Dimension]]:
    """Yield input name, ``INPUT:AXIS`` and the dimension, for every dimension of every tensor."""
    for value in values:
        if value.type.HasField("tensor_type"):
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                yield value.name, f"{value.name}:{axis}", dim


def _is_dynamic(dim: onnx.TensorShapeProto.Dimension) -> bool:
    return not is_fixed(dim)
