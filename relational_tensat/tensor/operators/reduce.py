"""Reductions over some axes; the mean of whole images is one over the spatial ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor.field import Field
from relational_tensat.tensor.operators.attributes import Attr, bool_of, ints_of
from relational_tensat.tensor.operators.base import Operator, Types, Values, tensor
from relational_tensat.tensor.operators.onnx_form import (
    Mapped,
    Names,
    OnnxEmitter,
    OnnxNode,
    attr_int,
    emit_reduce,
    input_type,
    static_ints,
)
from relational_tensat.tensor.operators.registry import register
from relational_tensat.tensor.operators.samples import Hints, PartialApplication, ints_in
from relational_tensat.tensor.operators.shapes import (
    NUMBER_DTYPES,
    check_axis,
    front_axis,
    one_dtype,
)
from relational_tensat.tensor.operators.traits import Family, Use
from relational_tensat.tensor.types import FLOAT_DTYPES, Attrs, AttrValue, TensorType, ValueType


class _Reduce(Operator):
    """Reduces ``axes`` (ascending, at least one); keeps them with size 1 on demand."""

    attrs = (Attr("axes", "ints"), Attr("keepdims", "bool"))
    computes = Family.REDUCTION
    keeps_size = True
    accepts: ClassVar[frozenset[str]] = NUMBER_DTYPES
    #: What is left of it where it reduces no axis.
    of_no_axis: ClassVar[str] = "identity"
    #: The NumPy reduction.
    reducer: ClassVar[Callable[..., Any]]

    def canonical(self, inputs: Types, attrs: Attrs) -> dict[str, AttrValue]:
        result = self.normalize(attrs)
        rank = tensor(inputs[0], self.name).rank
        axes = sorted(front_axis(self.name, axis, rank) for axis in ints_of(result, "axes"))
        return {**result, "axes": tuple(axes)}

    def infer(self, inputs: Types, attrs: Attrs) -> TensorType:
        x, axes = tensor(inputs[0], self.name), ints_of(attrs, "axes")
        one_dtype(self.name, [x], self.accepts)
        for axis in axes:
            check_axis(self.name, axis, x.rank)
        if not axes or any(a >= b for a, b in pairwise(axes)):
            raise ShapeError(
                f"{self.name}: axes {list(axes)}, expected ascending numbers, one at least"
            )
        if bool_of(attrs, "keepdims"):
            return x.with_shape(tuple(1 if i in axes else s for i, s in enumerate(x.shape)))
        return x.with_shape(tuple(s for i, s in enumerate(x.shape) if i not in axes))

    def evaluate(self, inputs: Values, attrs: Attrs) -> Any:
        x = inputs[0]
        result = type(self).reducer(
            x, axis=ints_of(attrs, "axes"), keepdims=bool_of(attrs, "keepdims")
        )
        return np.asarray(result).astype(x.dtype, copy=False)  # NumPy sums small integers as int64

    def flops(self, inputs: Types, output: ValueType, attrs: Attrs) -> int:
        return tensor(inputs[0], self.name).size

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """A tensor whose reduction may have the shape of the result."""
        target, axes = partial.target, ints_in(partial.attrs.get("axes", ()))
        if target is None:
            return hints.tensor_type(max(1, hints.rank, *(axis + 1 for axis in axes)))
        if partial.attrs.get("keepdims") is True or (1 in target and hints.choices.often()):
            return hints.type([hints.size() if size == 1 else size for size in target])
        at = axes[0] if axes and axes[0] <= len(target) else hints.choices.between(0, len(target))
        return hints.type([*target[:at], hints.size(), *target[at:]])

    def read_onnx(self, node: OnnxNode) -> Mapped | None:
        rank = input_type(node, 0).rank
        if node.op_type.startswith("Global"):
            attrs: dict[str, AttrValue] = {"axes": tuple(range(2, rank)), "keepdims": True}
            return Mapped(self.name, (node.inputs[0],), attrs)
        axes = static_ints(node, "axes", 1)
        if not axes:
            if attr_int(node, "noop_with_empty_axes", 0) or rank == 0:
                return Mapped(self.of_no_axis, (node.inputs[0],))
            axes = tuple(range(rank))
        keepdims = attr_int(node, "keepdims", 1) == 1
        return Mapped(self.name, (node.inputs[0],), {"axes": axes, "keepdims": keepdims})

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        axes, keepdims = ints_of(attrs, "axes"), bool_of(attrs, "keepdims")
        return emit_reduce(emitter, self.onnx[0], inputs[0], axes, keepdims)


@register
class ReduceSum(_Reduce):
    """The sum of the elements."""

    name = "reduce_sum"
    sums = True
    onnx = ("ReduceSum",)
    reducer = np.sum

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        shape = tensor(inputs[0], self.name).shape
        return sizes[0] * math.prod(shape[axis] for axis in ints_of(attrs, "axes"))


@register
class ReduceMean(_Reduce):
    """The mean of the elements; of floats only, since integer means round."""

    name = "reduce_mean"
    sums = True
    onnx = ("ReduceMean", "GlobalAveragePool")
    accepts = FLOAT_DTYPES
    reducer = np.mean

    def to_onnx(
        self, inputs: Names, types: Types, output: ValueType, attrs: Attrs, emitter: OnnxEmitter
    ) -> list[str]:
        """Write the mean of whole images as GlobalAveragePool, which has a kernel on integers, too.

        Not of three axes: such a mean is part of a norm, which runtimes look for as ReduceMean.
        """
        x = tensor(types[0], self.name)
        is_spatial = ints_of(attrs, "axes") == tuple(range(2, x.rank)) and x.rank > 3
        if is_spatial and bool_of(attrs, "keepdims") and x.dtype == "float32":
            return emitter.emit("GlobalAveragePool", list(inputs))
        return super().to_onnx(inputs, types, output, attrs, emitter)

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.mean(inputs[0], ints_of(attrs, "axes"), bool_of(attrs, "keepdims"))


@register
class ReduceMax(_Reduce):
    """The largest element."""

    name = "reduce_max"
    uses = (Use.SCORE,)
    is_exact = True
    onnx = ("ReduceMax",)
    reducer = np.max

    def skipping_nan(self, operand: Any) -> Any:
        return np.fmax(operand, -np.inf) if operand.dtype.kind == "f" else operand

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.largest(inputs[0], ints_of(attrs, "axes"), bool_of(attrs, "keepdims"))


@register
class ReduceMin(_Reduce):
    """The smallest element."""

    name = "reduce_min"
    is_exact = True
    onnx = ("ReduceMin",)
    reducer = np.min

    def skipping_nan(self, operand: Any) -> Any:
        return np.fmin(operand, np.inf) if operand.dtype.kind == "f" else operand

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        axes, keepdims = ints_of(attrs, "axes"), bool_of(attrs, "keepdims")
        return field.largest(inputs[0], axes, keepdims, smallest=True)


@register
class ReduceProd(_Reduce):
    """The product of the elements."""

    name = "reduce_prod"
    uses = (Use.MULTIPLIED,)
    onnx = ("ReduceProd",)
    reducer = np.prod

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        return field.product(inputs[0], ints_of(attrs, "axes"), bool_of(attrs, "keepdims"))


@register
class ReduceL2(_Reduce):
    """The root of the sum of squares, of floats."""

    name = "reduce_l2"
    sums = True
    onnx = ("ReduceL2",)
    accepts = FLOAT_DTYPES
    of_no_axis = "abs"

    @staticmethod
    def reducer(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        """Return that root."""
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))

    def evaluate_exact(self, inputs: Values, types: Types, attrs: Attrs, field: Field) -> Any:
        axes, keepdims = ints_of(attrs, "axes"), bool_of(attrs, "keepdims")
        squares = field.multiply(inputs[0], inputs[0])
        return field.function("sqrt", field.reduced(np.sum(squares, axis=axes, keepdims=keepdims)))

    def growth(self, sizes: Sequence[float], inputs: Types, attrs: Attrs) -> float:
        shape = tensor(inputs[0], self.name).shape
        return sizes[0] * math.sqrt(math.prod(shape[axis] for axis in ints_of(attrs, "axes")))
