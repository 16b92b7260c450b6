"""The ONNX operators that an operator reads and writes, and the functions for both.

Nodes of any version are read: attributes that became inputs, defaults, static operands. Every such function
raises ``ShapeError`` where a node says something that is known at run time only; ``registry.map_onnx`` then
leaves the node opaque.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.base.records import record
from relational_tensat.tensor.types import Array, Attrs, TensorType, ValueType, numpy_dtype

#: The names of operands' tensors in an ONNX graph.
Names: TypeAlias = Sequence[str]


#: Writes a local function, given what to write with and the names of its operands; returns its results.
FunctionBody: TypeAlias = "Callable[[OnnxEmitter, Names], list[str]]"


class OnnxNode(Protocol):
    """An ONNX node as ``Operator.read_onnx`` sees it: static facts only, no protobuf."""

    @property
    def op_type(self) -> str:
        """The ONNX operator's name."""

    @property
    def domain(self) -> str:
        """The operator set that it is from; "" for the default one."""

    @property
    def opset(self) -> int:
        """The version of the default operator set."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs, "" where an optional one is left out."""

    @property
    def input_types(self) -> tuple[TensorType | None, ...]:
        """One per input; None where none is known."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs, "" where unused."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Numbers, strings, tuples of these; tensors as NumPy arrays."""

    def constant(self, index: int) -> Array | None:
        """Return the value of an input that is known before inference, None if it is not."""


@record
class Mapped:
    """The reading of an ONNX node: an operator, its operands, its attributes.

    An operand is the name of one of the ONNX node's inputs, or another ``Mapped``: a node of one output
    that is made for it first (``Gemm`` with ``transB`` is a matmul of a transpose).
    """

    op: str
    inputs: tuple[str | Mapped, ...]
    attrs: Attrs = field(default_factory=dict)


class OnnxEmitter(Protocol):
    """What ``Operator.to_onnx`` writes with."""

    @property
    def opset(self) -> int:
        """The version of the default operator set that is written."""

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add an ONNX node; return the names of its outputs (fresh ones for a number)."""

    def emit_of(self, domain: str, op_type: str, inputs: Sequence[str], **attrs: Any) -> list[str]:
        """Add a node of another operator set; return the name of its output."""

    def constant(self, value: Array) -> str:
        """Add (or find) an initializer of this value; return its name."""

    def call(
        self, domain: str, name: str, inputs: Names, body: FunctionBody, metadata: Mapping[str, str]
    ) -> list[str]:
        """Add a call of a local function, and the function if it is new; return its results' names.

        Args:
            body: writes the function with an emitter of its own, given the names of its operands.
            metadata: of the function.
        """


class OnnxForm:
    """How an operator is read from ONNX and written to it; part of ``Operator``."""

    name: ClassVar[str]
    #: The ONNX operators (default domain) that ``read_onnx`` reads.
    onnx: ClassVar[tuple[str, ...]] = ()
    #: The first version of ONNX's operators in which ``to_onnx`` writes this operator as one node,
    #: where it takes many before.
    onnx_since: ClassVar[int] = 1

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        """Translate an ONNX node of ``self.onnx``, of any version; None where it stays opaque.

        ``registry.map_onnx`` then checks operands and attributes.

        Raises:
            ShapeError: the node cannot be expressed (e.g. a shape is known at run time only).
        """
        return None

    def to_onnx(
        self,
        inputs: Names,
        types: tuple[ValueType, ...],
        output: ValueType,
        attrs: Attrs,
        emitter: OnnxEmitter,
    ) -> list[str]:
        """Write the operator as ONNX nodes; return the names of its results (one per part).

        Args:
            inputs: the names of the operands' tensors; a tuple operand (a ``noop``) takes as many
                names as it has parts, one after the other.
            types: one per operand.
            attrs: normalized.

        Valid for ``emitter.opset`` from 13 on. Without attributes, one node of the first of ``self.onnx``
        unless an operator writes itself otherwise.
        """
        if not self.onnx or attrs:
            raise NotImplementedError(f"{self.name} has no ONNX form")
        return emitter.emit(self.onnx[0], list(inputs))

    def adds_bias_apart(self, types: tuple[ValueType, ...]) -> bool:
        """Whether ``to_onnx`` adds the last of three operands by an ONNX node of its own."""
        return False


def attr_int(node: OnnxNode, name: str, default: int) -> int:
    """Return an integer attribute."""
    return int(node.attributes.get(name, default))


def attr_float(node: OnnxNode, name: str, default: float) -> float:
    """Return a float attribute."""
    return float(node.attributes.get(name, default))


def attr_str(node: OnnxNode, name: str, default: str) -> str:
    """Return a string attribute."""
    value: Any = node.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def attr_ints(node: OnnxNode, name: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of integers, None if it is not given."""
    value = node.attributes.get(name)
    return None if value is None else tuple(int(item) for item in value)


def has_input(node: OnnxNode, index: int) -> bool:
    """Return whether an optional input is given."""
    return index < len(node.inputs) and node.inputs[index] != ""


def input_type(node: OnnxNode, index: int) -> TensorType:
    """Return the type of an input.

    Raises:
        ShapeError: the input is left out, or no tensor of static shape.
    """
    kind = node.input_types[index] if has_input(node, index) else None
    if kind is None:
        raise ShapeError(f"{node.op_type}: input {index} has no static type")
    return kind


def constant_ints(node: OnnxNode, index: int) -> tuple[int, ...]:
    """Return the integers of an input that is known before inference.

    Raises:
        ShapeError: it is not known.
    """
    value = node.constant(index)
    if value is None:
        raise ShapeError(f"{node.op_type}: input {index} is not known before inference")
    return tuple(int(item) for item in value.reshape(-1))


def constant_float(node: OnnxNode, index: int, default: float) -> float:
    """Return the one number of an optional input.

    Raises:
        ShapeError: it is not known before inference, or not one number.
    """
    if not has_input(node, index):
        return default
    value = node.constant(index)
    if value is None or value.size != 1:
        raise ShapeError(f"{node.op_type}: input {index} is not one number known before inference")
    return float(value.reshape(-1)[0])


def static_ints(node: OnnxNode, name: str, index: int) -> tuple[int, ...] | None:
    """Return a list that old versions give as an attribute and new ones as an input, or None.

    Raises:
        ShapeError: the input is not known before inference.
    """
    if name in node.attributes:
        return attr_ints(node, name)
    return constant_ints(node, index) if has_input(node, index) else None


def check_one_output(node: OnnxNode) -> None:
    """Refuse a node whose optional further outputs (a mask, indices, statistics) are used.

    Raises:
        ShapeError: one is used.
    """
    if any(node.outputs[1:]):
        raise ShapeError(f"{node.op_type}: only the first output is understood")


#: ONNX ``TensorProto.DataType`` numbers of the element types (onnx.proto, enum DataType).
ONNX_DTYPES: dict[str, int] = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
    "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}  # fmt: skip

_ONNX_ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}


def dtype_of_onnx(number: int) -> str:
    """Return the name of an element type from its ONNX number.

    Raises:
        ShapeError: operators do not compute with that type.
    """
    for name, code in ONNX_DTYPES.items():
        if code == number:
            return name
    raise ShapeError(f"the ONNX element type {number} is not one that operators compute with")


def emit_ints(emitter: OnnxEmitter, values: Sequence[int]) -> str:
    """Write a list of integers as an int64 initializer; return its name."""
    return emitter.constant(np.array(values, dtype=np.int64))


def emit_constant(emitter: OnnxEmitter, value: Any, dtype: str) -> str:
    """Write an array or number as an initializer of an element type; return its name.

    NumPy has no bfloat16: such a constant is written as float32 and cast.
    """
    name = emitter.constant(np.asarray(value, dtype=numpy_dtype(dtype)))
    if dtype != "bfloat16":
        return name
    return emitter.emit("Cast", [name], to=ONNX_DTYPES["bfloat16"])[0]


def emit_activation(emitter: OnnxEmitter, name: str, act: str) -> list[str]:
    """Write a fused activation as a node of its own; nothing for ``none``."""
    return [name] if act == "none" else emitter.emit(_ONNX_ACTIVATIONS[act], [name])


def emit_reduce(
    emitter: OnnxEmitter, op_type: str, name: str, axes: Sequence[int], keepdims: bool
) -> list[str]:
    """Write a reduction; its axes became an input in version 13 (ReduceSum) or 18 (the others)."""
    if op_type == "ReduceSum" or emitter.opset >= 18:
        return emitter.emit(op_type, [name, emit_ints(emitter, axes)], keepdims=int(keepdims))
    return emitter.emit(op_type, [name], axes=list(axes), keepdims=int(keepdims))
