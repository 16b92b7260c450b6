"""Running a model on given inputs: in onnxruntime where it can, else in ONNX's reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import numpy_helper

from relational_tensat.verify.comparison import relative_error

#: Runs a model on inputs by name; returns its outputs in order.
Runner: TypeAlias = Callable[[bytes, Mapping[str, Any]], list[Any]]

#: Relative to an output's largest element: how far results may differ, by bytes of the element type.
_TOLERANCE = {8: 1e-6, 4: 1e-3, 2: 5e-2, 1: 2e-1}
_FATAL_ONLY = 4


def feeds(model: bytes, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return the inputs by name."""
    names = [value.name for value in onnx.load_model_from_string(model).graph.input]
    return {name: _as_value(value) for name, value in zip(names, inputs, strict=False)}


def sizes(model: bytes, values: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes that a model's dynamic dimensions have in its inputs, by name or INPUT:AXIS."""
    size_by_name: dict[str, int] = {}
    for value in onnx.load_model_from_string(model).graph.input:
        array = values.get(value.name)
        if value.type.HasField("tensor_type") and isinstance(array, np.ndarray):
            dims = value.type.tensor_type.shape.dim
            for axis, (dim, size) in enumerate(zip(dims, array.shape, strict=False)):
                if not dim.HasField("dim_value"):
                    size_by_name[dim.dim_param or f"{value.name}:{axis}"] = size
    return size_by_name


def run_in_onnxruntime(model: bytes, values: Mapping[str, Any]) -> list[Any]:
    """Run a model as it is written: onnxruntime's own optimizations are off.

    Raises:
        Exception: whatever onnxruntime raises; it has no common base class.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = {value.name for value in session.get_inputs()}
    result: list[Any] = session.run(None, {k: v for k, v in values.items() if k in names})
    return result


def run_in_reference(model: bytes, values: Mapping[str, Any]) -> list[Any]:
    """Run a model in ONNX's reference evaluator.

    Raises:
        Exception: whatever it raises for what it does not know.
    """
    from onnx.reference import ReferenceEvaluator

    proto = onnx.load_model_from_string(model)
    names = {value.name for value in proto.graph.input}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result: list[Any] = ReferenceEvaluator(proto).run(
            None, {k: v for k, v in values.items() if k in names}
        )
    return result


#: The second opinions, the preferred first.
RUNNERS: dict[str, Runner] = {
    "onnxruntime": run_in_onnxruntime,
    "onnx reference": run_in_reference,
}


def difference(before: Sequence[Any], after: Sequence[Any]) -> str:
    """Return what differs between the outputs of two models, in words; "" for nothing."""
    if len(before) != len(after):
        return f"{len(after)} outputs, expected {len(before)}"
    for index, (a, b) in enumerate(zip(before, after, strict=True)):
        reason = _value_difference(a, b)
        if reason:
            return f"output {index}: {reason}"
    return ""


def _value_difference(before: Any, after: Any) -> str:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        return difference([*before, *before.values()], [*after, *after.values()])
    if isinstance(before, list | tuple) and isinstance(after, list | tuple):
        return difference(before, after)
    if before is None or after is None:
        return "" if before is after else f"{after!r}, expected {before!r}"
    a, b = np.asarray(before), np.asarray(after)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{b.dtype}{list(b.shape)}, expected {a.dtype}{list(a.shape)}"
    if a.dtype.kind not in "biufV":
        return "" if np.array_equal(a, b) else "other elements"
    tolerance = 0.0 if a.dtype.kind in "biu" else _TOLERANCE[a.dtype.itemsize]
    if a.dtype.kind == "V":  # bfloat16 and smaller, which NumPy does not know
        a, b = a.astype(np.float32), b.astype(np.float32)
    error = relative_error(a, b)
    return "" if error <= tolerance else f"relative error {error:.1e} over {tolerance:.0e}"


def _as_value(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, list):
        return [_as_value(item) for item in value]
    return np.asarray(value) if isinstance(value, np.generic) else value
