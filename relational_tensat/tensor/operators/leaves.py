"""Leaves and tuples, which have no kernel of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError, UsageError, nearest
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, float_of, int_of, ints_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    constant_ints,
    emit_constant,
    emit_ints,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import NUMBERS, Hints, PartialApplication
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import (
    DTYPE_BYTES,
    FLOAT_DTYPES,
    Attrs,
    AttrValue,
    TensorType,
    ValueType,
    numpy_dtype,
    tensors_of,
)

#: A constant of up to so many elements is written out; a larger one is expanded when it runs.
_SMALL_CONSTANT_ELEMENTS = 1024


class _Free(Operator):
    """An operator that launches no kernel and moves nothing."""

    kernel = "nothing"
    is_exact = True
    keeps_size = True

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return 0

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return 0


def _declared_type(op: str, attrs: Attrs, smallest: int = 0) -> TensorType:
    shape = ints_of(attrs, "shape")
    if any(size < smallest for size in shape):
        raise ShapeError(f"{op}: shape {list(shape)}, expected sizes of at least {smallest}")
    return TensorType(str_of(attrs, "dtype"), shape)


class _NamedLeaf(_Free):
    """A leaf of the e-graph that stands for a named tensor of the graph."""

    is_structure = True
    in_rules = False

    arity = (0, 0)
    attrs = (Attr("name", "str"), Attr("dtype", "dtype"), Attr("shape", "ints"))

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        return _declared_type(self.name, attrs)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        raise UsageError(f"{self.name} {attrs['name']!r} has no value of its own; it is given")


@register
class Input(_NamedLeaf):
    """A graph input; graphs keep theirs apart, so only the e-graph has such nodes."""

    name = "input"


@register
class WeightLeaf(_NamedLeaf):
    """A weight; graphs keep theirs apart, so only the e-graph has such nodes."""

    name = "weight"
    is_constant = True


@register
class Fill(_Free):
    """A tensor whose elements all are one number."""

    name = "fill"
    may_be_view = True
    is_constant = True
    arity = (0, 0)
    attrs = (
        Attr("value", "float", samples=NUMBERS),
        Attr("dtype", "dtype"),
        Attr("shape", "ints"),
    )
    onnx = ("ConstantOfShape",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        """A fraction that the element type does not have is cut off: rules compute with what is there."""
        result = super().canonical(inputs, attrs)
        value = float_of(result, "value")
        if result["dtype"] in DTYPE_BYTES.keys() - FLOAT_DTYPES - {"bool"} and math.isfinite(value):
            result["value"] = value if value.is_integer() else float(math.trunc(value))
        return result

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        kind = _declared_type(self.name, attrs, smallest=1)
        if kind.dtype not in DTYPE_BYTES:
            raise ShapeError(
                f"fill: unknown dtype {kind.dtype!r}{nearest(kind.dtype, DTYPE_BYTES)}"
            )
        return kind

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        kind = self.infer((), attrs)
        dtype = np.dtype("float64") if kind.dtype in FLOAT_DTYPES else numpy_dtype(kind.dtype)
        # A view of one number: constants of any size take no memory.
        return np.broadcast_to(np.array(attrs["value"]).astype(dtype), kind.shape)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        value = field.constant(float_of(attrs, "value"))
        return np.broadcast_to(np.int64(value), self.infer((), attrs).shape)

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        return abs(float_of(attrs, "value"))

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        kind = partial.result
        if attr.name == "shape":
            shape = partial.target
            return hints.broadcast(shape).shape if shape else hints.tensor_type().shape
        if isinstance(kind, TensorType):
            if attr.name == "dtype" and hints.choices.often():
                return kind.dtype
            if attr.name == "value" and not kind.is_float:
                return float(hints.choices.choice([1, 0, -1, 2]))
        return super().suggest_attribute(attr, partial, hints)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        value = node.attributes.get("value", np.zeros(1, dtype=np.float32))
        if not isinstance(value, np.ndarray):
            return None
        number = value.reshape(-1)[0]
        if float(number) != number.item():  # an integer that no float holds
            return None
        attrs: Attrs = {
            "value": float(number),
            "dtype": str(value.dtype),
            "shape": constant_ints(node, 0),
        }
        return Mapped(self.name, (), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        kind, value = self.infer((), attrs), float_of(attrs, "value")
        if kind.size <= _SMALL_CONSTANT_ELEMENTS:
            return [emit_constant(emitter, np.full(kind.shape, value), kind.dtype)]
        scalar = emit_constant(emitter, value, kind.dtype)
        return emitter.emit("Expand", [scalar, emit_ints(emitter, kind.shape)])


@register
class Noop(_Free):
    """All tensors of all operands as one tuple: holds the several outputs of a graph together."""

    name = "noop"
    may_be_view = True
    is_structure = True
    takes_tuples = True
    uses = (Use.JOINED,)
    arity = (1, None)
    takes_empty = True

    def infer(self, inputs: Types, attrs: Attrs) -> ValueType:
        return tuple(part for value in inputs for part in tensors_of(value))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return flatten(inputs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return list(inputs)


@register
class Part(_Free):
    """One tensor of a tuple; graphs name the parts, so only the e-graph has such nodes."""

    name = "part"
    may_be_view = True
    is_structure = True
    takes_tuples = True
    takes_empty = True
    attrs = (Attr("index", "int"),)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        parts, index = tensors_of(inputs[0]), int_of(attrs, "index")
        if not 0 <= index < len(parts):
            raise ShapeError(f"part: index {index} is not in 0..{len(parts) - 1}")
        return parts[index]

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return flatten(inputs)[int_of(attrs, "index")]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        return None

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        whole = partial.operands[0]
        return hints.choices.below(len(whole) if isinstance(whole, tuple) else 1)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return [inputs[int_of(attrs, "index")]]


def flatten(values: Values) -> tuple[Any, ...]:
    """Return arrays and tuples of arrays as one tuple of arrays."""
    parts: list[Any] = []
    for value in values:
        parts.extend(value if isinstance(value, tuple) else (value,))
    return tuple(parts)
