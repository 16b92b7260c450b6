"""Operators that move or copy elements and compute nothing: axes, shapes, borders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, float_of, ints_of, str_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_float,
    attr_int,
    attr_ints,
    attr_str,
    constant_float,
    constant_ints,
    emit_constant,
    emit_ints,
    input_type,
    static_ints,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import NUMBERS, Hints, PartialApplication, ints_in
from relational_tensat.tensor.operators.shapes import (
    NUMBER_DTYPES,
    broadcast,
    front_axis,
    one_dtype,
)
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.operators.work_steps import (
    SCATTERED,
    STRETCH,
    scattered_by,
    stretches_of_expansion,
    stretches_of_transposition,
)
from relational_tensat.tensor.types import Attrs, AttrValue, TensorType, ValueType


class Copy(Operator):
    """An operator that moves elements without computing; its result is a tensor of its own."""

    kernel = "copy"
    is_exact = True
    keeps_size = True

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """None: it moves bytes only."""
        return 0


@register
class Transpose(Copy):
    """Axes in another order: result axis i is operand axis perm[i]."""

    name = "transpose"
    may_be_view = True
    uses = (Use.MOVED,)
    attrs = (Attr("perm", "ints"),)
    onnx = ("Transpose",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        result = self.normalize(attrs)
        rank = tensor(inputs[0], self.name).rank
        perm = tuple(front_axis(self.name, axis, rank) for axis in ints_of(result, "perm"))
        return {**result, "perm": perm}

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, perm = tensor(inputs[0], self.name), ints_of(attrs, "perm")
        if sorted(perm) != list(range(x.rank)):
            raise ShapeError(f"transpose: perm {list(perm)} is no permutation of 0..{x.rank - 1}")
        return x.with_shape(tuple(x.shape[axis] for axis in perm))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.transpose(inputs[0], ints_of(attrs, "perm"))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """The stretches that it moves, or elements of 4 bytes: smaller ones are moved several at a time."""
        shape = tensor(inputs[0], self.name).shape
        perm = ints_of(attrs, "perm")
        if stretches := stretches_of_transposition(shape, perm):
            return [(STRETCH, stretches)]
        elements = -(-tensor(output, self.name).nbytes // 4)
        return [(self.name, elements), (SCATTERED, scattered_by(shape, perm))]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target = partial.target
        if target is None:
            perm = partial.attrs.get("perm")
            return hints.tensor_type(len(perm)) if isinstance(perm, tuple) else None
        perm = partial.attrs.get("perm", hints.permutation(len(target)))
        if not isinstance(perm, tuple) or sorted(perm) != list(range(len(target))):
            return hints.type(target)
        shape = [0] * len(target)
        for place, axis in enumerate(ints_in(perm)):
            shape[axis] = target[place]
        return hints.type(shape)

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        return hints.permutation(len(partial.shapes[0] or ()))

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        perm = attr_ints(node, "perm") or tuple(reversed(range(input_type(node, 0).rank)))
        return Mapped(self.name, (node.inputs[0],), {"perm": perm})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Transpose", list(inputs), perm=list(ints_of(attrs, "perm")))


@register
class Reshape(Copy):
    """The same elements in the same row-major order under another shape, given in full."""

    name = "reshape"
    may_be_view = True
    uses = (Use.MOVED,)
    kernel = "view"
    attrs = (Attr("shape", "ints"),)
    onnx = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, shape = tensor(inputs[0], self.name), ints_of(attrs, "shape")
        if any(size < 1 for size in shape) or math.prod(shape) != x.size:
            raise ShapeError(f"reshape: {x} has {x.size} elements, which {list(shape)} has not")
        return x.with_shape(shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.reshape(inputs[0], ints_of(attrs, "shape"))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target = partial.target
        return None if target is None else hints.type(hints.reshaped(target))

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        shape, target = partial.shapes[0], partial.target
        if target is not None and math.prod(target) == math.prod(shape or ()):
            return target
        return hints.reshaped(shape or ())

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        readers = {"Reshape": _resolve_shape, "Flatten": _flatten, "Squeeze": _squeeze}
        shape = readers.get(node.op_type, _unsqueeze)(node, input_type(node, 0).shape)
        return Mapped(self.name, (node.inputs[0],), {"shape": shape})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Reshape", [inputs[0], emit_ints(emitter, ints_of(attrs, "shape"))])


@register
class Expand(Copy):
    """The operand broadcast to a shape: repeated along dims of size 1, and new ones before the first."""

    name = "expand"
    may_be_view = True
    uses = (Use.MOVED,)
    attrs = (Attr("shape", "ints"),)
    onnx = ("Expand",)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, shape = tensor(inputs[0], self.name), ints_of(attrs, "shape")
        if min(shape, default=1) < 1 or broadcast(self.name, x.shape, shape) != shape:
            raise ShapeError(f"expand: {x} does not broadcast to {list(shape)}")
        return x.with_shape(shape)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.broadcast_to(inputs[0], ints_of(attrs, "shape"))

    def works(self, inputs: Types, output: ValueType, attrs: Attrs) -> list[tuple[str, int]]:
        """The stretches that it copies."""
        shape = tensor(inputs[0], self.name).shape
        return [(STRETCH, stretches_of_expansion(shape, tensor(output, self.name).shape))]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target = partial.target
        return None if target is None else hints.broadcast(target)

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """The shape that is wanted, where the operand has one that broadcasts into it."""
        shape, target = partial.shapes[0] or (), partial.target
        if target is None:
            return hints.grown(shape)
        back = zip(reversed(shape), reversed(target), strict=False)
        return target if all(size in (1, wanted) for size, wanted in back) else hints.grown(shape)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        shape = broadcast(self.name, input_type(node, 0).shape, constant_ints(node, 1))
        return Mapped(self.name, (node.inputs[0],), {"shape": shape})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Expand", [inputs[0], emit_ints(emitter, ints_of(attrs, "shape"))])


def _resolve_shape(node: OnnxNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Resolve Reshape's 0 (copy a dimension) and -1 (what is left)."""
    sizes = list(static_ints(node, "shape", 1) or ())
    if not attr_int(node, "allowzero", 0):
        for i, size in enumerate(sizes):
            if size == 0:
                if i >= len(shape):
                    raise ShapeError(f"Reshape: dimension {i} is to be copied from {list(shape)}")
                sizes[i] = shape[i]
    if sizes.count(-1) == 1:
        product = -math.prod(sizes)
        if product < 1 or math.prod(shape) % product:
            raise ShapeError(f"Reshape: {list(shape)} does not fit into {sizes}")
        sizes[sizes.index(-1)] = math.prod(shape) // product
    return tuple(sizes)


def _flatten(node: OnnxNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    axis = attr_int(node, "axis", 1)
    axis = axis if axis == len(shape) else front_axis("Flatten", axis, len(shape))
    return math.prod(shape[:axis]), math.prod(shape[axis:])


def _squeeze(node: OnnxNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = static_ints(node, "axes", 1)
    if axes is None:
        return tuple(size for size in shape if size != 1)
    dropped = {front_axis("Squeeze", axis, len(shape)) for axis in axes}
    return tuple(size for i, size in enumerate(shape) if i not in dropped)


def _unsqueeze(node: OnnxNode, shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = static_ints(node, "axes", 1) or ()
    rank = len(shape) + len(axes)
    new_axes = {front_axis("Unsqueeze", axis, rank) for axis in axes}
    sizes = iter(shape)
    return tuple(1 if i in new_axes else next(sizes) for i in range(rank))


@register
class Pad(Copy):
    """A border around the operand: of one number, mirrored without the edge, or of the edge.

    ``pads`` lists what is added at the beginning of every axis, then what at the end.
    """

    name = "pad"
    uses = (Use.MOVED,)
    attrs = (
        Attr("pads", "ints"),
        Attr("mode", "str", "constant", ("constant", "reflect", "edge")),
        Attr("value", "float", 0.0, samples=NUMBERS, timed_as=0.0),
    )
    onnx = ("Pad",)

    def normalize(self, attrs: Attrs) -> dict[str, AttrValue]:
        result = super().normalize(attrs)
        if result["mode"] != "constant":
            result["value"] = 0.0  # not used
        return result

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, pads = tensor(inputs[0], self.name), ints_of(attrs, "pads")
        one_dtype(self.name, [x], NUMBER_DTYPES)
        if len(pads) != 2 * x.rank or any(pad < 0 for pad in pads):
            raise ShapeError(f"pad: pads {list(pads)}, expected {2 * x.rank} non-negative numbers")
        begins, ends = pads[: x.rank], pads[x.rank :]
        if attrs["mode"] == "reflect" and any(
            pad >= size for pad, size in zip(pads, x.shape * 2, strict=True)
        ):
            raise ShapeError(f"pad: pads {list(pads)} reflect more than {list(x.shape)} has")
        return x.with_shape(tuple(map(sum, zip(x.shape, begins, ends, strict=True))))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x, pads = inputs[0], ints_of(attrs, "pads")
        if not x.ndim:  # NumPy pads no single number
            return x
        widths = list(zip(pads[: x.ndim], pads[x.ndim :], strict=True))
        if str_of(attrs, "mode") == "constant":
            value = np.array(float_of(attrs, "value")).astype(x.dtype)
            return np.pad(x, widths, constant_values=value)
        return np.pad(x, widths, mode="reflect" if attrs["mode"] == "reflect" else "edge")

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        value = field.constant(float_of(attrs, "value"))
        return self.evaluate(inputs, {**attrs, "value": value})

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """An image, or a tensor that is smaller than the result by the padding."""
        target, pads = partial.target, ints_in(partial.attrs.get("pads", ()))
        if target is None:
            if pads or hints.choices.below(4) == 3:
                return hints.tensor_type(len(pads) // 2 if pads else None)
            return hints.image_type()
        if len(pads) == 2 * len(target):
            totals = map(sum, zip(pads[: len(target)], pads[len(target) :], strict=True))
            pairs = zip(target, totals, strict=True)
            return hints.type([max(1, size - total) for size, total in pairs])
        return hints.type([max(1, size - hints.choices.below(3)) for size in target])

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        if attr.name != "pads":
            return super().suggest_attribute(attr, partial, hints)
        rank = len(partial.shapes[0] or ())
        if hints.choices.below(4) == 0:
            return (0,) * (2 * rank)
        padded = [i % rank >= 2 or hints.choices.below(4) == 3 for i in range(2 * rank)]
        return tuple(hints.choices.below(3) if is_padded else 0 for is_padded in padded)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        if node.opset < 11:
            pads = attr_ints(node, "pads") or attr_ints(node, "paddings") or ()
            value = attr_float(node, "value", 0.0)
        else:
            rank = input_type(node, 0).rank
            pads = _pads_of_axes(
                static_ints(node, "pads", 1) or (), static_ints(node, "axes", 3), rank
            )
            value = constant_float(node, 2, 0.0)
        attrs: Attrs = {"pads": pads, "mode": attr_str(node, "mode", "constant"), "value": value}
        return Mapped(self.name, (node.inputs[0],), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        operands, value = [inputs[0], emit_ints(emitter, ints_of(attrs, "pads"))], attrs["value"]
        if value != 0.0:
            operands.append(emit_constant(emitter, value, tensor(types[0], self.name).dtype))
        return emitter.emit("Pad", operands, mode=str_of(attrs, "mode"))


def _pads_of_axes(pads: Sequence[int], axes: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Return the pads of all axes where an ONNX node gives those of some."""
    if axes is None:
        return tuple(pads)
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"Pad: {len(pads)} pads for {len(axes)} axes")
    result = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        front = front_axis("Pad", axis, rank)
        result[front], result[rank + front] = pads[i], pads[len(axes) + i]
    return tuple(result)
