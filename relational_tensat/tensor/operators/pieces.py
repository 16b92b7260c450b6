"""Operators that join tensors along an axis, or take parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.operators.attributes import int_of, ints_of
from relational_tensat.tensor.operators.base import (
    Attr,
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    Operator,
    Types,
    Values,
    register,
    tensor,
)
from relational_tensat.tensor.operators.layout import Copy
from relational_tensat.tensor.operators.leaves import flatten
from relational_tensat.tensor.operators.onnx_read import attr_int, input_type, static_ints
from relational_tensat.tensor.operators.onnx_write import emit_ints
from relational_tensat.tensor.operators.shapes import check_axis, front_axis
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

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        # Version 1 has a default, 1; from version 4 on the axis must be given.
        return Mapped(self.name, node.inputs, {"axis": attr_int(node, "axis", 1)})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Concat", list(inputs), axis=int_of(attrs, "axis"))


@register
class Split(Copy):
    """The operand cut along an axis into pieces of given sizes."""

    name = "split"
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
    attrs = tuple(Attr(name, "ints") for name in ("axes", "starts", "ends", "steps"))
    onnx = ("Slice",)

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        result, x = self.normalize(attrs), tensor(inputs[0], self.name)
        cuts = []
        for given, start, end, step in _cuts(result):
            axis = front_axis(self.name, given, x.rank)
            # Python's slices clamp as ONNX's do.
            taken = range(*slice(start, end, step).indices(x.shape[axis])) if step > 0 else range(0)
            if not taken:
                raise ShapeError(f"slice: {start}:{end}:{step} takes nothing of axis {axis} of {x}")
            if taken != range(x.shape[axis]):
                cuts.append((axis, taken.start, taken[-1] + 1, step if len(taken) > 1 else 1))
        columns = zip(*sorted(cuts), strict=True) if cuts else ((), (), (), ())
        return {attr.name: tuple(each) for attr, each in zip(self.attrs, columns, strict=True)}

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
            shape[axis], previous = len(range(start, end, step)), axis
        return x.with_shape(tuple(shape))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        slices = [slice(None)] * inputs[0].ndim
        for axis, start, end, step in _cuts(attrs):
            slices[axis] = slice(start, end, step)
        return inputs[0][tuple(slices)]

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """What is taken, read and written."""
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


def _cuts(attrs: Attrs) -> list[tuple[int, int, int, int]]:
    """Return axis, start, end and step of each cut.

    Raises:
        ShapeError: the four lists differ in length.
    """
    lists = [ints_of(attrs, name) for name in ("axes", "starts", "ends", "steps")]
    if len({len(each) for each in lists}) != 1:
        raise ShapeError("slice: axes, starts, ends and steps differ in length")
    return [(axis, start, end, step) for axis, start, end, step in zip(*lists, strict=True)]


@register
class Gather(Copy):
    """The slices of ``data`` along an axis that ``indices`` (integers) names; -1 is the last."""

    name = "gather"
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

    def bytes_moved(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        """The indices, and what they name read and written; the rest of the data is not touched."""
        return tensor(inputs[1], self.name).nbytes + 2 * tensor(output, self.name).nbytes

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        return Mapped(self.name, node.inputs, {"axis": attr_int(node, "axis", 0)})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        return emitter.emit("Gather", list(inputs), axis=int_of(attrs, "axis"))
