"""Outputs that a model leaves open: what an extremum of several elements makes of NaN.

onnxruntime spreads NaN there or passes over it by its place in memory. A model of either kind, made of
the nodes of the first, shows which outputs depend on that.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from bench.fuzz.values import Array

#: Extrema, with the operator that finds whether one of the same elements is NaN.
_EXTREMA = {
    "ReduceMax": "ReduceMax", "ReduceMin": "ReduceMax",
    "MaxPool": "MaxPool", "GlobalMaxPool": "GlobalMaxPool",
}  # fmt: skip


def has_extrema(model: bytes) -> bool:
    """Whether a model has an operator whose result for NaN is open."""
    return any(node.op_type in _EXTREMA for node in onnx.load_from_string(model).graph.node)


def with_nan(serialized: bytes, *, spreads: bool) -> bytes:
    """Return a model as it would be if all its extrema spread NaN, or all passed over it."""
    model = onnx.shape_inference.infer_shapes(onnx.load_from_string(serialized))
    graph = model.graph
    dtypes = {
        info.name: helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        for info in (*graph.input, *graph.value_info, *graph.output)
    }
    nodes: list[onnx.NodeProto] = []
    for index, node in enumerate(list(graph.node)):
        dtype = np.dtype(dtypes.get(node.input[0], np.float32)) if node.input else None
        if node.op_type in _EXTREMA and dtype is not None and dtype.kind == "f":
            nodes += _defined(node, dtype, f"extremum{index}_", spreads=spreads)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    result: bytes = model.SerializeToString()
    return result


def _defined(
    node: onnx.NodeProto, dtype: np.dtype[np.generic], prefix: str, *, spreads: bool
) -> Iterator[onnx.NodeProto]:
    """Yield the nodes that compute an extremum of what is a number, and whether all elements were."""

    def name(text: str) -> str:
        return prefix + text

    def constant(text: str, value: float) -> onnx.NodeProto:
        tensor = numpy_helper.from_array(np.array(value, dtype))
        return helper.make_node("Constant", [], [name(text)], value=tensor)

    x, others, result = node.input[0], list(node.input[1:]), node.output[0]
    # Pools of float32 begin with the lowest finite number: they have no other for infinity below.
    lowest = -float(np.finfo(np.float32).max) if "Pool" in node.op_type else -np.inf
    yield helper.make_node("IsNaN", [x], [name("is_nan")])
    yield constant("nan", np.nan)
    yield constant("least", np.inf if node.op_type == "ReduceMin" else lowest)
    yield helper.make_node("Where", [name("is_nan"), name("least"), x], [name("number")])
    numbers = onnx.NodeProto()
    numbers.CopyFrom(node)
    numbers.input[0] = name("number")
    numbers.output[0] = name("extremum") if spreads else result
    yield numbers
    if not spreads:
        return
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    found = onnx.NodeProto()
    found.CopyFrom(node)
    found.op_type = _EXTREMA[node.op_type]
    del found.input[:]
    found.input.extend([name("as_number"), *others])
    found.output[0] = name("found")
    yield helper.make_node("Cast", [name("is_nan")], [name("as_number")], to=kind)
    yield found
    yield helper.make_node("Cast", [name("found")], [name("any")], to=onnx.TensorProto.BOOL)
    yield helper.make_node("Where", [name("any"), name("nan"), name("extremum")], [result])


def differ(a: Array, b: Array) -> Array:
    """Return where two arrays differ; NaN is NaN."""
    return np.asarray((a != b) & ~((a != a) & (b != b)))
