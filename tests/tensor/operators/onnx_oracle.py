"""Operators run by onnxruntime through their ONNX form, and read back: the tests' oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime

from relational_tensat.tensor import Array, TensorType, ValueType, numpy_dtype, tensors_of
from relational_tensat.tensor.operators import Mapped, get_operator, map_onnx
from relational_tensat.tensor.types import Attrs


class Emitter:
    """Collects what ``to_onnx`` writes."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        start = len(self.nodes)
        names = (
            [f"t{start}_{k}" for k in range(outputs)] if isinstance(outputs, int) else list(outputs)
        )
        self.nodes.append(onnx.helper.make_node(op_type, list(inputs), names, **attrs))
        return names

    def constant(self, value: Array) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name


@dataclass
class ReadNode:
    """An ONNX node as ``from_onnx`` sees it."""

    op_type: str
    inputs: tuple[str, ...]
    input_types: tuple[TensorType | None, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)
    opset: int = 20
    domain: str = ""

    def constant(self, index: int) -> Array | None:
        return self.constants.get(self.inputs[index]) if index < len(self.inputs) else None


def node(
    op_type: str,
    *shapes: tuple[int, ...] | Array | None,
    opset: int = 20,
    outputs: Sequence[str] = ("y",),
    dtype: str = "float32",
    **attributes: Any,
) -> ReadNode:
    """Return a node whose operands have these shapes, are these constants, or are left out."""
    names: list[str] = []
    types: list[TensorType | None] = []
    constants: dict[str, Array] = {}
    for k, shape in enumerate(shapes):
        name = "" if shape is None else f"x{k}"
        names.append(name)
        if shape is None:
            types.append(None)
        elif isinstance(shape, tuple):
            types.append(TensorType(dtype, shape))
        else:
            types.append(TensorType(str(shape.dtype), shape.shape))
            constants[name] = shape
    return ReadNode(
        op_type, tuple(names), tuple(types), attributes, constants, tuple(outputs), opset
    )


def read(seen: ReadNode) -> Mapped | None:
    """Return what the operator that reads this ONNX operator makes of the node."""
    from relational_tensat.tensor.operators import operators

    for operator in operators().values():
        if seen.op_type in operator.onnx:
            mapped = map_onnx(operator, seen)
            if mapped is not None:
                return mapped
    return None


def compute(mapped: Mapped, seen: ReadNode, values: Sequence[Any]) -> Any:
    """Evaluate what a node was read as on the node's operands."""
    value_of = dict(zip(seen.inputs, values, strict=True))

    def value(operand: str | Mapped) -> Any:
        if isinstance(operand, str):
            return value_of[operand]
        operator = get_operator(operand.op)
        return operator.evaluate([value(inner) for inner in operand.inputs], operand.attrs)

    return value(mapped)


def evaluated(array: Array) -> Array:
    """Return an array as operators compute with it."""
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def run_onnx(
    nodes: Sequence[Any],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, TensorType],
    constants: Mapping[str, Array],
    opset: int,
) -> list[Array]:
    """Check and run ONNX nodes."""
    info, to_proto = onnx.helper.make_tensor_value_info, onnx.helper.np_dtype_to_tensor_dtype
    graph = onnx.helper.make_graph(
        list(nodes),
        "g",
        [info(name, to_proto(array.dtype), array.shape) for name, array in inputs.items()],
        [info(n, to_proto(numpy_dtype(t.dtype)), t.shape) for n, t in outputs.items()],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    imports = [onnx.helper.make_opsetid("", opset)]
    model = onnx.helper.make_model(graph, opset_imports=imports, ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(inputs)))


@dataclass
class Written:
    """An operator's ONNX form."""

    emitter: Emitter
    names: list[str]
    results: list[str]
    result_type: ValueType


def write(op: str, types: Sequence[ValueType], attrs: Attrs, opset: int) -> Written:
    """Write an operator as ONNX nodes, its attributes canonical."""
    operator, emitter = get_operator(op), Emitter(opset)
    kinds = tuple(types)
    attrs = operator.canonical(kinds, attrs)
    result = operator.check(kinds, attrs)
    names = [f"x{k}" for k in range(sum(len(tensors_of(kind)) for kind in kinds))]
    results = operator.to_onnx(names, kinds, result, attrs, emitter)
    return Written(emitter, names, results, result)


def check_against_onnxruntime(
    op: str, arrays: Sequence[Array], attrs: Attrs, opset: int = 20, tolerance: float = 2e-5
) -> None:
    """Check shapes and values of an operator against its ONNX form in onnxruntime."""
    arrays = [np.asarray(array) for array in arrays]
    kinds = tuple(TensorType(str(array.dtype), array.shape) for array in arrays)
    written = write(op, kinds, attrs, opset)
    operator = get_operator(op)
    canonical = operator.canonical(kinds, attrs)
    own = operator.evaluate([evaluated(array) for array in arrays], canonical)
    parts: tuple[Any, ...] = own if isinstance(own, tuple) else (own,)
    kinds_out = tensors_of(written.result_type)
    copies = [
        onnx.helper.make_node("Identity", [name], [f"y{k}"])
        for k, name in enumerate(written.results)
    ]
    theirs: list[Any] = run_onnx(
        [*written.emitter.nodes, *copies],
        dict(zip(written.names, arrays, strict=True)),
        {f"y{k}": kind for k, kind in enumerate(kinds_out)},
        written.emitter.constants,
        opset,
    )
    assert len(parts) == len(theirs) == len(kinds_out)
    for part, other, kind in zip(parts, theirs, kinds_out, strict=True):
        assert np.asarray(part).shape == other.shape == kind.shape
        assert str(other.dtype) == kind.dtype
        scale = max(1.0, float(np.abs(other.astype(np.float64)).max()))
        np.testing.assert_allclose(part, other, rtol=tolerance, atol=tolerance * scale)


def read_back(op: str, types: Sequence[TensorType], attrs: Attrs, opset: int = 20) -> Attrs:
    """Return the attributes read from the first ONNX node that an operator writes."""
    written = write(op, types, attrs, opset)
    first = written.emitter.nodes[0]
    values = {a.name: onnx.helper.get_attribute_value(a) for a in first.attribute}
    known: dict[str, TensorType] = dict(zip(written.names, types, strict=True))
    for name, value in written.emitter.constants.items():
        known[name] = TensorType(str(value.dtype), value.shape)
    seen = ReadNode(
        first.op_type,
        tuple(first.input),
        tuple(known.get(name) for name in first.input),
        {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()},
        written.emitter.constants,
        tuple(first.output),
        opset,
    )
    mapped = read(seen)
    assert mapped is not None
    assert mapped.op == op
    return mapped.attrs
