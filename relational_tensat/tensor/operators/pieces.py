"""Operators that join tensors along an axis, or take parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators.attributes import Attr, int_of, ints_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.layout import Copy
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    emit_ints,
    input_type,
    static_ints,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication, Shape, ints_in
from relational_tensat.tensor.operators.shapes import check_axis, front_axis
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import (
    Attrs,
    AttrValue,
    TensorType,
    TupleType,
    ValueType,
    tensors_of,
)


def _front_axis(operator: Operator, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
    """Normalize, and count the attribute ``axis`` of the first tensor from the front."""
    result = operator.normalize(attrs)
    rank = tensors_of(inputs[0])[0].rank
    return {**result, "axis": front_axis(operator.name, int_of(result, "axis"), rank)}


@register
class Concat(Copy):
    """All tensors of all operands, one after the other along an axis."""

    name = "concat"
    takes_tuples = True
    uses = (Use.JOINED,)
    arity = (1, None)
    attrs = (Attr("axis", "int"),)
    onnx = ("Concat",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        return _front_axis(self, inputs, attrs)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        first, *others = parts = [part for value in inputs for part in tensors_of(value)]
        axis = check_axis(self.name, int_of(attrs, "axis"), first.rank)
        before, after = first.shape[:axis], first.shape[axis + 1 :]
        for other in others:
            if other.dtype != first.dtype or other.rank != first.rank:
                raise ShapeError(f"concat: {first} and {other} differ in element type or rank")
            if other.shape[:axis] != before or other.shape[axis + 1 :] != after:
                raise ShapeError(f"concat: {first} and {other} differ beside axis {axis}")
        return first.with_shape((*before, sum(part.shape[axis] for part in parts), *after))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        return np.concatenate(flatten(inputs), axis=int_of(attrs, "axis"))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target, shapes, axis = partial.target, partial.shapes, partial.attrs.get("axis")
        siblings = [shape for shape in shapes if shape]
        if target and len(shapes) > 1:
            cut = axis if isinstance(axis, int) else _cut_axis(target, siblings, hints)
            if cut < len(target) and all(len(shape) == len(target) for shape in siblings):
                left = target[cut] - sum(shape[cut] for shape in siblings)
                last = len(siblings) == len(shapes) - 1
                size = left if last else hints.choices.between(1, max(1, left - 1))
                return hints.type([*target[:cut], max(1, size), *target[cut + 1 :]])
        if not siblings:
            return None
        shape = list(hints.choices.choice(siblings))
        joined = axis if isinstance(axis, int) else hints.choices.below(max(1, len(shape)))
        if joined < len(shape) and not hints.choices.often():
            shape[joined] = hints.size()
        return hints.type(shape)

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """An axis on which the operands differ, or any."""
        shapes = [shape for shape in partial.shapes if shape]
        rank = min(map(len, shapes), default=1)
        differing = [i for i in range(rank) if len({shape[i] for shape in shapes}) > 1]
        axis = hints.choices.choice(differing or list(range(max(1, rank))))
        if shapes:
            sizes = tuple(shape[axis] for shape in shapes)
            hints.cuts[sum(sizes)] = sizes
        return axis

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        # Version 1 has a default, 1; from version 4 on the axis must be given.
        attrs = {"axis": attr_int(node, "axis", 1)}
        filled = [i for i in range(len(node.inputs)) if input_type(node, i).size]
        return Mapped(self.name, tuple(node.inputs[i] for i in filled) or node.inputs, attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Concat", list(inputs), axis=int_of(attrs, "axis"))


def _cut_axis(target: Shape, siblings: list[Shape], hints: Hints) -> int:
    """Return the axis on which the first sibling is shorter than the whole, or a longer one."""
    for own, axis in zip(siblings[0] if siblings else (), range(len(target)), strict=False):
        if own < target[axis]:
            return axis
    long = [axis for axis, size in enumerate(target) if size > 1]
    return hints.choices.choice(long or [0])


@register
class Split(Copy):
    """The operand cut along an axis into pieces of given sizes."""

    name = "split"
    may_be_view = True
    uses = (Use.MOVED,)
    attrs = (Attr("axis", "int"), Attr("sizes", "ints"))
    multi_output = True
    onnx = ("Split",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        return _front_axis(self, inputs, attrs)

    def infer(self, inputs: Types, attrs: Attrs) -> TupleType:
        x, sizes = tensor(inputs[0], self.name), ints_of(attrs, "sizes")
        axis = check_axis(self.name, int_of(attrs, "axis"), x.rank)
        if not sizes or any(size < 1 for size in sizes) or sum(sizes) != x.shape[axis]:
            raise ShapeError(
                f"split: sizes {list(sizes)}, expected positive numbers of sum {x.shape[axis]}"
            )
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        return tuple(x.with_shape((*before, size, *after)) for size in sizes)

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        cuts = np.cumsum(ints_of(attrs, "sizes"))[:-1]
        return tuple(np.split(inputs[0], cuts, axis=int_of(attrs, "axis")))

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        return None

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        if attr.name != "sizes":
            return super().suggest_attribute(attr, partial, hints)
        shape, axis = partial.shapes[0], partial.attrs["axis"]
        return hints.pieces(shape[axis] if shape and isinstance(axis, int) else 1)

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        shape = input_type(node, 0).shape
        axis = front_axis(self.name, attr_int(node, "axis", 0), len(shape))
        sizes = static_ints(node, "split", 1)
        if sizes is None:  # equal pieces; from version 18 on the last may be smaller
            count = attr_int(node, "num_outputs", len(node.outputs))
            piece = -(-shape[axis] // count)
            sizes = (*(piece,) * (count - 1), shape[axis] - piece * (count - 1))
        if len(sizes) != len(node.outputs):
            return None
        return Mapped(self.name, (node.inputs[0],), {"axis": axis, "sizes": sizes})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        sizes = ints_of(attrs, "sizes")
        operands = [inputs[0], emit_ints(emitter, sizes)]
        return emitter.emit("Split", operands, outputs=len(sizes), axis=int_of(attrs, "axis"))


@register
class Slice(Copy):
    """Every ``steps[i]``-th element of ``starts[i]`` up to below ``ends[i]``, along ``axes[i]``.

    Canonical: axes ascending and only those that are cut, bounds within the operand, ends right
    behind the last element taken.
    """

    name = "slice"
    may_be_view = True
    uses = (Use.MOVED,)
    attrs = tuple(Attr(name, "ints") for name in ("axes", "starts", "ends", "steps"))
    onnx = ("Slice",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        result, x = self.normalize(attrs), tensor(inputs[0], self.name)
        cuts = []
        for cut_axis, start, end, step in _cuts(result):
            axis = front_axis(self.name, cut_axis, x.rank)
            size = x.shape[axis]
            first, stop = _clamped(start, size), _clamped(end, size)
            if step < 1 or first >= stop:
                raise ShapeError(f"slice: {start}:{end}:{step} takes nothing of axis {axis} of {x}")
            last = first + (stop - 1 - first) // step * step
            if last == first:
                step = 1
            if first > 0 or last < size - 1 or step > 1:
                cuts.append((axis, first, last + 1, step))
        columns = zip(*sorted(cuts), strict=True) if cuts else ((), (), (), ())
        return {attr.name: tuple(column) for attr, column in zip(self.attrs, columns, strict=True)}

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x = tensor(inputs[0], self.name)
        shape, previous = list(x.shape), -1
        for axis, start, end, step in _cuts(attrs):
            check_axis(self.name, axis, x.rank)
            if axis <= previous or not 0 <= start < end <= shape[axis] or step < 1:
                raise ShapeError(
                    f"slice: axis {axis}, {start}:{end}:{step} of {x}, expected ascending axes,"
                    " bounds within the operand and positive steps"
                )
            shape[axis], previous = (end - start - 1) // step + 1, axis
        return x.with_shape(tuple(shape))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        slices = [slice(None)] * inputs[0].ndim
        for axis, start, end, step in _cuts(attrs):
            slices[axis] = slice(start, end, step)
        return inputs[0][tuple(slices)]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        target = partial.target
        return None if target is None else hints.type([s + hints.size() - 1 for s in target])

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        choices, shape = hints.choices, partial.shapes[0] or ()
        axes, starts = partial.attrs.get("axes"), partial.attrs.get("starts")

        def length(axis: int) -> int:
            return shape[axis] if axis < len(shape) else 1

        if attr.name == "axes" or not isinstance(axes, tuple):
            long = [i for i, size in enumerate(shape) if size > 1]
            return tuple(choices.sample(long, min(len(long), choices.choice((1, 1, 0, 2)))))
        if attr.name == "starts" or not isinstance(starts, tuple):
            return tuple(choices.below(length(axis)) for axis in ints_in(axes))
        if attr.name == "ends":
            pairs = zip(ints_in(axes), ints_in(starts), strict=False)
            return tuple(choices.between(s + 1, max(s + 1, length(axis))) for axis, s in pairs)
        return tuple(choices.choice((1, 1, 2)) for _ in axes)

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """The elements taken, read and written."""
        return 2 * tensor(output, self.name).nbytes

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        starts, ends = static_ints(node, "starts", 1), static_ints(node, "ends", 2)
        if starts is None or ends is None:
            return None
        axes = static_ints(node, "axes", 3) or tuple(range(len(starts)))
        steps = static_ints(node, "steps", 4) or (1,) * len(starts)
        attrs = {"axes": axes, "starts": starts, "ends": ends, "steps": steps}
        return Mapped(self.name, (node.inputs[0],), attrs)

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        if not attrs["axes"]:
            return emitter.emit("Identity", list(inputs))
        bounds = [
            emit_ints(emitter, ints_of(attrs, n)) for n in ("starts", "ends", "axes", "steps")
        ]
        return emitter.emit("Slice", [inputs[0], *bounds])


def _clamped(bound: int, size: int) -> int:
    """Return a bound counted from the front, within the axis: Python's slices clamp as ONNX's do."""
    if bound < 0:
        bound += size
    if bound < 0:
        return 0
    return size if bound > size else bound


def _cuts(attrs: Attrs) -> list[tuple[int, int, int, int]]:
    """Return axis, start, end and step of each cut.

    Raises:
        ShapeError: the four lists differ in length.
    """
    lists = [ints_of(attrs, name) for name in ("axes", "starts", "ends", "steps")]
    if len({len(ints) for ints in lists}) != 1:
        raise ShapeError("slice: axes, starts, ends and steps differ in length")
    return [(axis, start, end, step) for axis, start, end, step in zip(*lists, strict=True)]


@register
class Gather(Copy):
    """The slices of ``data`` along an axis that ``indices`` (integers) names; -1 is the last."""

    name = "gather"
    uses = (Use.MOVED, Use.INDEX)
    arity = (2, 2)
    attrs = (Attr("axis", "int"),)
    onnx = ("Gather",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        return _front_axis(self, inputs, attrs)

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        data, indices = tensor(inputs[0], "gather: data"), tensor(inputs[1], "gather: indices")
        axis = check_axis(self.name, int_of(attrs, "axis"), data.rank)
        if indices.dtype not in ("int64", "int32"):
            raise ShapeError(f"gather: indices are {indices}, expected int64 or int32")
        return data.with_shape((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        data, indices = inputs
        axis = int_of(attrs, "axis")
        size = data.shape[axis]
        if indices.min() < -size or indices.max() >= size:
            raise ShapeError(f"gather: an index is not in {-size}..{size - 1}")
        return np.take(data, indices, axis=axis)

    def index_range(self, inputs: Types, attrs: Attrs) -> int:
        return tensors_of(inputs[0])[0].shape[int_of(attrs, "axis")]

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        if index == 0:
            return hints.tensor_type(max(1, hints.rank))
        return TensorType("int64", hints.tensor_type(hints.choices.below(3)).shape)

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """The indices, and what they name read and written; the rest of the data is not touched."""
        return tensor(inputs[1], self.name).nbytes + 2 * tensor(output, self.name).nbytes

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, node.inputs, {"axis": attr_int(node, "axis", 0)})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Gather", list(inputs), axis=int_of(attrs, "axis"))
