"""One ONNX node: as operators see it when they read it, and what ONNX itself says about it.

Operators see it as ``tensor.operators.onnx_form.OnnxNode``. ONNX says the types of its outputs, and their
values when all is known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import AttributeProto
from onnxruntime.capi import onnxruntime_pybind11_state as runtime_errors

from relational_tensat.base.errors import ModelError, first_line
from relational_tensat.base.folders import utf8_name
from relational_tensat.formats.arrays import compact
from relational_tensat.formats.onnx_metadata import (
    INFERENCE_ERRORS,
    infer_shapes,
    is_unchanged,
    opset_imports,
)
from relational_tensat.formats.onnx_names import subgraphs
from relational_tensat.formats.onnx_opaque import input_names, is_deterministic
from relational_tensat.formats.onnx_types import (
    UNKNOWN,
    array_of,
    dtype_name,
    from_type_proto,
    to_tensor,
    to_value_info,
)
from relational_tensat.tensor import DTYPE_BYTES, TensorType, Weight, numpy_dtype
from relational_tensat.tensor.types import Array

#: Constants of up to so many elements can decide the shape of a result.
_SHAPE_ELEMENTS = 65536
#: A version of the default operator set that every supported onnxruntime runs.
_RUNNABLE_OPSET = 21
_FATAL_ONLY = 4

_RUNTIME_ERRORS = (
    runtime_errors.Fail,
    runtime_errors.InvalidArgument,
    runtime_errors.InvalidGraph,
    runtime_errors.NotImplemented,
    runtime_errors.RuntimeException,
)


class MisfitError(ModelError):
    """The operands of a node do not fit.

    Attributes:
        types: of its operands.
        known: elements of operands that are known before inference.
    """

    def __init__(
        self,
        message: str,
        node: onnx.NodeProto,
        types: Mapping[str, TensorType],
        known: Mapping[str, Array],
    ) -> None:
        super().__init__(message)
        self.node = node
        self.types = types
        self.known = known


class NodeOracle:
    """Answers for single nodes of one model.

    Args:
        imports: the model's operator set versions.
        where: the file's name, for messages.
    """

    def __init__(self, imports: Mapping[str, int], where: str) -> None:
        self._imports = dict(imports)
        self._where = where

    def output_types(
        self,
        node: onnx.NodeProto,
        types: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
    ) -> dict[str, TensorType | None]:
        """Return the types of the node's named outputs; None where ONNX does not know.

        Raises:
            MisfitError: the node's operands do not fit.
        """
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        model = self._model(node, types, weights, outputs, self._imports)
        try:
            inferred = infer_shapes(model)
        except INFERENCE_ERRORS as error:
            # ONNX fails on some functions, and on unknown operands
            runtime_types = _runtime_types(model)
            if runtime_types.keys() != {value.name for value in outputs}:
                is_unknown = any(types[name] == UNKNOWN for name in input_names(node))
                if is_unknown or any(True for _ in subgraphs(node)):  # a branch that is not taken
                    return dict.fromkeys((value.name for value in outputs), None)
                message = f"{self._where}: {label(node)}: {condense(str(error))}"
                names = input_names(node)
                known = {n: w.data for n in names if (w := weights.get(n)) and w.data is not None}
                raise MisfitError(message, node, {n: types[n] for n in names}, known) from None
            return {value.name: runtime_types[value.name] for value in outputs}
        types_of = {value.name: from_type_proto(value.type) for value in inferred.graph.output}
        if None in types_of.values() and node.domain:
            types_of |= _runtime_types(model)
        return types_of

    def evaluate(
        self,
        node: onnx.NodeProto,
        types: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
    ) -> dict[str, Array] | None:
        """Compute a node whose inputs are all weights with data; None when that cannot be done.

        Args:
            types: those of the inputs and of the outputs; an output's shape may be unknown.
        """
        imports = dict(self._imports)
        if imports[""] > _RUNNABLE_OPSET and is_unchanged(node, imports[""], _RUNNABLE_OPSET):
            imports[""] = _RUNNABLE_OPSET
        names = [name for name in node.output if name]
        outputs = [to_value_info(name, types[name]) for name in names]
        model = self._model(node, types, weights, outputs, imports)
        try:
            results = _session(model.SerializeToString()).run(names, {})
        except _RUNTIME_ERRORS:  # no kernel for this version or element type: stays a node
            return None
        return {
            name: compact(np.asarray(result)) for name, result in zip(names, results, strict=True)
        }

    def _model(
        self,
        node: onnx.NodeProto,
        types: Mapping[str, TensorType],
        weights: Mapping[str, Weight],
        outputs: list[onnx.ValueInfoProto],
        imports: Mapping[str, int],
    ) -> onnx.ModelProto:
        """Return a model of this node alone; small constants are initializers."""
        names = tuple(dict.fromkeys(input_names(node)))
        constants = {
            name: weights[name].data
            for name in names
            if name in weights and weights[name].type.size <= _SHAPE_ELEMENTS
        }
        initializers = [
            to_tensor(name, data, types[name].dtype)
            for name, data in constants.items()
            if data is not None
        ]
        initializer_names = {tensor.name for tensor in initializers}
        inputs = [
            to_value_info(name, types[name]) for name in names if name not in initializer_names
        ]
        graph = onnx.helper.make_graph([node], "node", inputs, outputs, initializers)
        return onnx.helper.make_model(graph, opset_imports=opset_imports(imports), ir_version=10)


def label(node: onnx.NodeProto) -> str:
    """Return how messages name an ONNX node."""
    domain = f"{node.domain}." if node.domain else ""
    output = next(filter(None, node.output), "")
    return f"node {node.name or output!r} ({domain}{node.op_type})"


def condense(message: str) -> str:
    """Return a message of several lines as one line of at most 300 characters."""
    line = " ".join(message.split()).replace("[ShapeInferenceError] ", "")
    return line if len(line) <= 300 else line[:297] + "..."


def opens_in_runtime(path: Path) -> bool:
    """Whether onnxruntime takes a model file, as it is."""
    try:
        _session(utf8_name(path))
    except _RUNTIME_ERRORS:
        return False
    return True


class OnesRunner:
    """Runs a model file on ones, as onnxruntime takes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._session: onnxruntime.InferenceSession | None = None
        self._is_taken = True

    def refusal(
        self, inputs: Mapping[str, TensorType], values: Mapping[str, Array] | None = None
    ) -> str:
        """Run it; return why that is refused, "" if it is not.

        Where onnxruntime does not take the file at all, or no numbers, nothing is known: "".

        Args:
            values: of inputs that are not ones.
        """
        if any(kind.dtype not in DTYPE_BYTES for kind in inputs.values()):
            return ""
        if self._session is None and self._is_taken:
            try:
                self._session = _session(utf8_name(self._path))
            except _RUNTIME_ERRORS:
                self._is_taken = False
        if self._session is None:
            return ""
        try:
            feeds = {name: np.ones(k.shape, numpy_dtype(k.dtype)) for name, k in inputs.items()}
        except MemoryError as error:
            return condense(first_line(error))
        try:
            self._session.run(None, {**feeds, **(values or {})})
        except _RUNTIME_ERRORS as error:
            return condense(first_line(error))
        return ""


def differ_on_random(
    before: onnx.ModelProto, after: onnx.ModelProto, known: Mapping[str, Array]
) -> bool:
    """Whether two models compute different things on random inputs in onnxruntime.

    Where it does not run the first, or that is random itself, nothing is known: False.

    Args:
        known: inputs that are not drawn.
    """
    if not all(map(is_deterministic, before.graph.node)):
        return False
    random = np.random.default_rng(0)
    try:
        first = _session(before.SerializeToString())
        feeds = {
            item.name: known[item.name] if item.name in known else _drawn(item, random)
            for item in first.get_inputs()
        }
        expected = first.run(None, feeds)
    except (*_RUNTIME_ERRORS, KeyError):
        return False
    try:
        results = _session(after.SerializeToString()).run(None, feeds)
    except _RUNTIME_ERRORS:
        return True
    return not all(map(_are_close, expected, results))


def _are_close(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray) or a.dtype.kind not in "biuf":
        return bool(np.array_equal(a, b))
    if a.shape != b.shape or a.dtype.kind != "f":
        return bool(np.array_equal(a, b))
    return bool(np.allclose(a, b, rtol=1e-2, atol=1e-4, equal_nan=True))


def _drawn(item: onnxruntime.NodeArg, random: np.random.Generator) -> Array:
    """Draw an input: floats, or 0 and 1.

    Raises:
        KeyError: it is no tensor of numbers, or of no known shape.
    """
    if not all(isinstance(size, int) for size in item.shape):
        raise KeyError(item.name)
    dtype = numpy_dtype(_element_type(item.type))
    values = random.normal(size=item.shape)
    return np.asarray(values if dtype.kind == "f" else values > 0).astype(dtype)


def _session(model: bytes | str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _runtime_types(model: onnx.ModelProto) -> dict[str, TensorType]:
    """Return the output types that onnxruntime infers for a node of a domain of its own."""
    try:
        outputs = _session(model.SerializeToString()).get_outputs()
    except _RUNTIME_ERRORS:  # it does not know the operator either
        return {}
    types = {}
    for value in outputs:
        element = _element_type(value.type)
        if element and all(isinstance(size, int) for size in value.shape):
            types[value.name] = TensorType(element, tuple(value.shape))
    return types


def _element_type(text: str) -> str:
    """Return the element type that onnxruntime calls ``tensor(float)``; "" for no tensor."""
    if not text.startswith("tensor("):
        return ""
    name = text.removeprefix("tensor(").removesuffix(")")
    return dtype_name(onnx.TensorProto.DataType.Value(name.upper()))


@dataclass(frozen=True, slots=True)
class ReadNode:
    """The static facts of an ONNX node."""

    op_type: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    input_types: tuple[TensorType | None, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    weights: Mapping[str, Weight]

    def constant(self, index: int) -> Array | None:
        """Return the value of an input that is known before inference, None if it is not."""
        if index >= len(self.inputs):
            return None
        weight = self.weights.get(self.inputs[index])
        return None if weight is None else weight.data


def read_node(
    node: onnx.NodeProto,
    opset: int,
    types: Mapping[str, TensorType],
    weights: Mapping[str, Weight],
    needed_values: Collection[str],
) -> ReadNode:
    """Return what operators may know of a node.

    Args:
        opset: the version of the default operator set.
        needed_values: the values that the model needs; other outputs count as left out.
    """
    return ReadNode(
        node.op_type,
        node.domain,
        opset,
        tuple(node.input),
        tuple(types[name] if name else None for name in node.input),
        tuple(name if name in needed_values else "" for name in node.output),
        {attribute.name: attribute_value(attribute) for attribute in node.attribute},
        weights,
    )


def attribute_value(attribute: onnx.AttributeProto) -> Any:
    """Return an attribute as Python has it: numbers, strings, tuples of these, arrays.

    Strings that are no UTF-8 stay bytes; graphs, types and sparse tensors stay protobuf messages.
    """
    match attribute.type:
        case AttributeProto.FLOAT:
            return float(attribute.f)
        case AttributeProto.INT:
            return int(attribute.i)
        case AttributeProto.STRING:
            return _text(attribute.s)
        case AttributeProto.TENSOR:
            return array_of(attribute.t)
        case AttributeProto.FLOATS:
            return tuple(map(float, attribute.floats))
        case AttributeProto.INTS:
            return tuple(map(int, attribute.ints))
        case AttributeProto.STRINGS:
            return tuple(map(_text, attribute.strings))
        case AttributeProto.TENSORS:
            return tuple(map(array_of, attribute.tensors))
        case _:
            return onnx.helper.get_attribute_value(attribute)


def _text(value: bytes) -> str | bytes:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value
