"""Random ONNX models of several graphs each, valid and with kernels in onnxruntime."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from bench.fuzz.pieces import EVERY, FLOATS, Draft, Place, Value, pieces_for
from bench.fuzz.values import Array, drawn_array

_OPSET = 21
_IR_VERSION = 10
_FATAL_ONLY = 4
#: Shapes of inputs: pictures, sequences, matrices, numbers; few, so that values meet their equals.
_SHAPES = [(1, 4, 5, 5), (2, 4, 3), (3, 4), (4, 3), (4,), (), (1, 2, 3, 4)]
#: Floats are half of what models compute with; all other types have the other half.
_DTYPES = ["float32"] * 6 + [*FLOATS, *EVERY]
_NODES = (3, 12)
_INPUTS = (1, 3)
#: Attempts per node, and how often the last operator is applied again, to the same or another value.
_ATTEMPTS, _AGAIN = 4, 0.3
_MOST_ELEMENTS = 4096
#: Whether onnxruntime has a kernel, by operator and element types of operands.
_KERNELS: dict[tuple[str, ...], bool] = {}


@dataclass(slots=True)
class RandomGraph:
    """A random graph under construction: what an ONNX model is made of, and inputs to run it with."""

    prefix: str
    random: np.random.Generator
    values: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    _last: tuple[Draft, np.dtype[np.generic]] | None = None

    def grow(self) -> None:
        """Draw inputs and nodes."""
        for _ in range(self.random.integers(*_INPUTS, endpoint=True)):
            dtype = np.dtype(_DTYPES[self.random.integers(len(_DTYPES))])
            shape = _SHAPES[self.random.integers(len(_SHAPES))]
            self.inputs.append(Value(f"{self.prefix}x{len(self.inputs)}", dtype, shape))
        self.values += self.inputs
        for _ in range(self.random.integers(*_NODES, endpoint=True)):
            for _ in range(_ATTEMPTS):
                draft = self._draft()
                if draft is not None and self._add(draft):
                    break

    def outputs(self) -> list[Value]:
        """Return the values that nothing reads; the last one where all are read."""
        read = {name for node in self.nodes for name in node.input}
        open_values = [value for value in self.values if value.name not in read]
        return [value for value in open_values if value not in self.inputs] or self.values[-1:]

    def feeds(self, random: np.random.Generator) -> dict[str, Array]:
        """Return random inputs by name."""
        return {value.name: drawn_array(random, value.dtype, value.shape) for value in self.inputs}

    def _draft(self) -> Draft | None:
        """Draw a node: the values that were made last are read most."""
        newest = len(self.values) - 1 - min(int(self.random.exponential(1.5)), len(self.values) - 1)
        value = self.values[newest]
        if self._last is not None and self.random.random() < _AGAIN:
            draft, dtype = self._last
            if dtype == value.dtype:
                return replace(draft, operands=self._similar_operands(draft, value))
        pieces = pieces_for(value.dtype)
        others = [other for other in self.values if other is not value]
        return pieces[self.random.integers(len(pieces))](Place(value, others, self.random))

    def _similar_operands(self, draft: Draft, value: Value) -> list[str | Array]:
        """Return operands of another such node: with other constants, or on another value."""
        if self.random.random() < 0.5:
            return [value.name, *draft.operands[1:]]
        return [
            operand if isinstance(operand, str) or operand.dtype == np.int64
            else drawn_array(self.random, operand.dtype, operand.shape)
            for operand in draft.operands
        ]  # fmt: skip

    def _add(self, draft: Draft) -> bool:
        """Add a node if it is valid, of a static shape, and onnxruntime has a kernel for it."""
        arrays = [operand for operand in draft.operands if not isinstance(operand, str)]
        first = len(self.constants)
        constants = {f"{self.prefix}c{first + i}": array for i, array in enumerate(arrays)}
        names_of_constants = iter(constants)
        names = [
            operand if isinstance(operand, str) else next(names_of_constants)
            for operand in draft.operands
        ]
        outputs = [f"{self.prefix}v{len(self.values) + index}" for index in range(draft.n_outputs)]
        node = helper.make_node(draft.op_type, names, outputs, **draft.attributes)
        tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
        kinds = {value.name: value for value in self.values}
        operands = [kinds[name] for name in names if name in kinds]
        results = _results(node, operands, tensors)
        if results is None or any(np.prod(v.shape) > _MOST_ELEMENTS for v in results):
            return False
        self.nodes.append(node)
        self.constants += tensors
        self.values += results
        if operands:
            self._last = draft, operands[0].dtype
        return True


def as_model(graphs: list[RandomGraph]) -> bytes:
    """Return a model of several graphs side by side."""
    graph = helper.make_graph(
        [node for part in graphs for node in part.nodes],
        "fuzz",
        [_info(value) for part in graphs for value in part.inputs],
        [_info(value) for part in graphs for value in part.outputs()],
        [tensor for part in graphs for tensor in part.constants],
    )
    return _serialized(graph)


def drawn_graph(seed: int, index: int) -> RandomGraph:
    """Return the random graph of a seed and an index."""
    random = np.random.default_rng([seed, index])
    while True:
        graph = RandomGraph(f"g{index}_", random)
        graph.grow()
        if graph.nodes and _runs(as_model([graph]), graph.feeds(random)):
            return graph


def _results(
    node: onnx.NodeProto, operands: list[Value], constants: list[onnx.TensorProto]
) -> list[Value] | None:
    """Return the results of a node; None where it is not valid, or cannot be run."""
    graph = helper.make_graph(
        [node],
        "node",
        [_info(value) for value in {value.name: value for value in operands}.values()],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        constants,
    )
    model = onnx.load_model_from_string(_serialized(graph))
    try:
        types = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return None
    results = [_value(info) for info in types.graph.output]
    if not all(results):
        return None
    dtypes = [value.dtype.name for value in operands]
    dtypes += [str(tensor.data_type) for tensor in constants]
    if not _has_kernel((node.op_type, *dtypes), types):
        return None
    return [value for value in results if value is not None]


def _has_kernel(signature: tuple[str, ...], model: onnx.ModelProto) -> bool:
    """Whether onnxruntime has a kernel for a node: found out once for its operator and types."""
    if signature not in _KERNELS:
        _KERNELS[signature] = _runs(model.SerializeToString())
    return _KERNELS[signature]


def _runs(model: bytes, feeds: dict[str, Array] | None = None) -> bool:
    """Whether onnxruntime opens a model and, with inputs, runs it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL_ONLY
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        if feeds is not None:
            session.run(None, feeds)
    except Exception:  # onnxruntime's errors have no common base class
        return False
    return True


def _value(info: onnx.ValueInfoProto) -> Value | None:
    kind = info.type.tensor_type
    if not kind.HasField("shape") or not all(dim.HasField("dim_value") for dim in kind.shape.dim):
        return None
    shape = tuple(dim.dim_value for dim in kind.shape.dim)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return None if min(shape, default=0) < 0 else Value(info.name, dtype, shape)


def _info(value: Value) -> onnx.ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(value.name, dtype, value.shape)


def _serialized(graph: onnx.GraphProto) -> bytes:
    imports = [helper.make_opsetid("", _OPSET)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=_IR_VERSION)
    serialized: bytes = model.SerializeToString()
    return serialized
