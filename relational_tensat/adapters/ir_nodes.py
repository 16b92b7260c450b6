"""Nodes of onnx-ir: as operators read them, and written by operators.

A value's name here is a token of this process: names in a file are free to change while it is rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir

from relational_tensat.base.errors import ShapeError
from relational_tensat.formats.arrays import compact
from relational_tensat.tensor.operators.onnx_form import ONNX_DTYPES, FunctionBody
from relational_tensat.tensor.types import Array, TensorType, numpy_dtype

_DTYPES = {number: name for name, number in ONNX_DTYPES.items()}


def token(value: onnx_ir.Value | None) -> str:
    """Return the name of a value here; "" for an operand that is left out."""
    return "" if value is None else f"value {id(value)}"


def type_of(value: onnx_ir.Value) -> TensorType | None:
    """Return the type of a value; None where it is not known, or of no static shape."""
    dtype, shape = value.dtype, value.shape
    if dtype is None or shape is None or dtype.value not in _DTYPES:
        return None
    if not all(isinstance(size, int) for size in shape):
        return None
    return TensorType(_DTYPES[dtype.value], tuple(int(size) for size in shape))


def data_of(value: onnx_ir.Value) -> Array | None:
    """Return the elements of a value; None unless they are known before inference, and at hand.

    A constant that is an input, too, is only a default: users of the model may give another.
    """
    constant, kind = value.const_value, type_of(value)
    if constant is None or kind is None or value.is_graph_input():
        return None
    try:
        array = constant.numpy()
    except OSError:  # its file is not there
        return None
    return compact(np.asarray(array).astype(numpy_dtype(kind.dtype), copy=False))


def is_known(value: onnx_ir.Value) -> bool:
    """Whether a value depends on constants only."""
    seen: set[onnx_ir.Value] = set()
    left = [value]
    while left:
        each = left.pop()
        if each in seen:
            continue
        seen.add(each)
        if each.const_value is not None and not each.is_graph_input():
            continue
        node = each.producer()
        if node is None or node.op_type.startswith("Random"):
            return False
        left += [operand for operand in node.inputs if operand is not None]
    return True


@dataclass(frozen=True)
class IrNode:
    """A node of onnx-ir as ``Operator.read_onnx`` takes it."""

    node: onnx_ir.Node
    opset: int

    @property
    def op_type(self) -> str:
        """The operator's name."""
        return str(self.node.op_type)

    @property
    def domain(self) -> str:
        """The operator set that it is from."""
        return str(self.node.domain)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the operands."""
        return tuple(map(token, self.node.inputs))

    @property
    def input_types(self) -> tuple[TensorType | None, ...]:
        """Their types."""
        return tuple(None if value is None else type_of(value) for value in self.node.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results; "" where nothing needs one."""
        return tuple(
            token(value) if value.uses() or value.is_graph_output() else ""
            for value in self.node.outputs
        )

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Raises ``ShapeError`` where one refers to a function's own."""
        return {name: _plain(attribute) for name, attribute in self.node.attributes.items()}

    def constant(self, index: int) -> Array | None:
        """Return the elements of an operand that is known before inference, None if it is not."""
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        return None if value is None else data_of(value)


def _plain(attribute: onnx_ir.Attr) -> Any:
    if attribute.is_ref():
        raise ShapeError(f"the attribute {attribute.name!r} is a function's own")
    value = attribute.value
    if attribute.type == onnx_ir.AttributeType.TENSOR:
        return value.numpy()
    return value if isinstance(value, str | int | float) else tuple(value)


class NoFormError(Exception):
    """An operator is not written with ONNX's own operators alone."""


@dataclass
class IrEmitter:
    """Write operators with the builder of a rewriter.

    Attributes:
        builder: onnxscript's, which makes the nodes.
        values: by the names that operators know them by.
        count: of nodes, constants left out.
    """

    builder: Any
    opset: int
    values: dict[str, onnx_ir.Value] = field(default_factory=dict)
    count: int = 0

    def emit(
        self, op_type: str, inputs: Sequence[str], outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> list[str]:
        """Add a node; return the names of its outputs."""
        number = outputs if isinstance(outputs, int) else len(outputs)
        operands = [self.values[name] if name else None for name in inputs]
        made = self.builder.op(
            op_type,
            *operands,
            _outputs=number,
            **{name: _attribute(name, value) for name, value in attrs.items()},
        )
        self.count += op_type != "Constant"
        return [self.named(value) for value in ([made] if number == 1 else made)]

    def emit_of(self, domain: str, op_type: str, inputs: Sequence[str], **attrs: Any) -> list[str]:
        """Refuse: no other operator set is written.

        Raises:
            NoFormError: always.
        """
        raise NoFormError(f"{domain}.{op_type}")

    def constant(self, value: Array) -> str:
        """Add a constant, as a node: initializers of a graph may have its name already."""
        (name,) = self.emit("Constant", [], value=np.asarray(value))
        return name

    def call(
        self,
        domain: str,
        name: str,
        inputs: Sequence[str],
        body: FunctionBody,
        metadata: Mapping[str, str],
    ) -> list[str]:
        """Refuse: no local functions are written.

        Raises:
            NoFormError: always.
        """
        raise NoFormError(f"{domain}.{name}")

    def named(self, value: onnx_ir.Value) -> str:
        """Return the name of a value, which operators may use from now on."""
        self.values[token(value)] = value
        return token(value)


def set_type(value: onnx_ir.Value, kind: TensorType) -> None:
    """Say of what type a value is: rules that come later ask."""
    value.dtype = onnx_ir.DataType(ONNX_DTYPES[kind.dtype])
    value.shape = onnx_ir.Shape(kind.shape)


def _attribute(name: str, value: Any) -> onnx_ir.Attr:
    if isinstance(value, np.ndarray):
        return onnx_ir.AttrTensor(name, onnx_ir.tensor(value))
    if isinstance(value, str):
        return onnx_ir.AttrString(name, value)
    if isinstance(value, int):  # numbers of NumPy never get here
        return onnx_ir.AttrInt64(name, int(value))
    if isinstance(value, float):
        return onnx_ir.AttrFloat32(name, value)
    if any(isinstance(item, float) for item in value):
        return onnx_ir.AttrFloat32s(name, list(value))
    return onnx_ir.AttrInt64s(name, list(value))
