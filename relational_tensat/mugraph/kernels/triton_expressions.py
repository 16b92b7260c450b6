"""A block's steps as expressions of Triton: functions, products, reductions, windows.

Registers have no parts, so elements of a window are gathered along an axis.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import cast

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, Window, without
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import Operation
from relational_tensat.mugraph.kernels.triton_tensors import (
    Axes,
    TritonValue,
    count_of,
    real,
    renamed,
    union,
)
from relational_tensat.tensor.spellings import SPELLINGS


def windowed(value: TritonValue, window: Window, axes: Axes, where: str) -> TritonValue:
    """Return a window of a tensor.

    Args:
        value: the tensor.
        window: of one variable at most, with one at most of its own.
        axes: lengths of axes, and the names of indices.
        where: named in errors.

    Raises:
        InputError: it is along several variables.
    """
    taken = [dim for dim in value.axes if dim.variable in window.variables]
    into = real(tuple(map(Dim, window.into, window.sizes)))
    if len(window.variables) > 1 or len(into) > 1 or window.strides:
        raise InputError(f"{where}: Triton takes no window of several variables at once")
    if not taken:  # of one element, or of elements that are all the same
        return _bounded(value, window, (*value.axes, *into), axes) if window.is_bounded else value
    (old,) = taken
    place = value.axes.index(old)
    if not into:
        chosen = f"tl.where({axes.along(old, value.axes)} == {window.offset}, {value.wide}, 0.0)"
        rest = tuple(dim for dim in value.axes if dim != old)
        return TritonValue(f"tl.sum({chosen}, axis={place})", rest, True)
    (new,) = into
    moved = (*value.axes[:place], new, *value.axes[place + 1 :])
    index = axes.along(new, moved)
    index = index if window.step == 1 else f"{window.step} * {index}"
    index = f"{window.offset} + {index}" if window.offset else index
    ends = [window.offset + window.step * last for last in (0, axes.length(new) - 1)]
    if min(ends) < 0 or max(ends) >= axes.length(old):
        index = f"tl.minimum(tl.maximum({index}, 0), {axes.length(old) - 1})"
    indices = f"tl.broadcast_to({index}, {axes.shape(moved)})"
    gathered = TritonValue(
        f"tl.gather({value.text}, {indices}, axis={place})", moved, value.is_wide
    )
    return _bounded(gathered, window, moved, axes)


def _bounded(
    value: TritonValue, window: Window, axes: tuple[Dim, ...], lengths: Axes
) -> TritonValue:
    """Return a tensor that is zero where the window is, its padding included."""
    (new,) = real(tuple(map(Dim, window.into, window.sizes)))
    index = lengths.along(new, axes)
    conditions = [f"({index} >= {window.first})"] if window.first else []
    conditions += [f"({index} < {window.last})"] if window.last < lengths.length(new) else []
    if not conditions:
        return value
    text = f"tl.where({' & '.join(conditions)}, {lengths.aligned(value, axes, value.text)}, 0.0)"
    return TritonValue(text, axes, value.is_wide)


#: The least value of a maximum. Where a mask left nothing but -inf, differences from it have exponentials
#: 0.
LOWEST = "-3.4028234663852886e38"
TYPES = {"float32": "tl.float32", "float16": "tl.float16", "bfloat16": "tl.bfloat16"}
PRODUCTS = ("matmul", "concat_matmul")

#: To the power of a tensor, or of a number.
POWERS = ("pow", "power")
#: The first lines of modules whose kernels have powers. Triton has none that its interpreter knows, too.
POWER = """\
@triton.jit
def _power(x, y):
    whole = y == tl.floor(y)
    half = 0.5 * y
    is_odd = whole & (half != tl.floor(half)) & (tl.abs(y) < 16777216.0)
    size = tl.exp2(y * tl.log2(tl.abs(x)))
    signed = tl.where((x < 0.0) & is_odd, -size, size)
    real = tl.where((x < 0.0) & (x > float("-inf")) & (y == y) & (whole == 0), float("nan"), signed)
    is_one = (x == 1.0) | (y == 0.0) | ((x == -1.0) & (tl.abs(y) == float("inf")))
    return tl.where(is_one, 1.0, real)
"""


class Expressions:
    """Expressions of steps, of the tensors that were named before.

    Attributes:
        axes: lengths of axes, and the names of indices.
        values: the tensors that have a name, by that of the μGraph.
    """

    def __init__(
        self, where: str, dims: Mapping[str, Dims], axes: Axes, dtype: str, tiles: Collection[str]
    ) -> None:
        """Begin, with no tensor named.

        Args:
            where: the kernel's name, for errors.
            dims: of the block's tensors.
            axes: their lengths.
            dtype: of what products read.
            tiles: the names in Triton of what was loaded, whose padding is zero.
        """
        self._where, self._dims, self._dtype = where, dims, dtype
        self._tiles = frozenset(tiles)
        self.axes = axes
        self.values: dict[str, TritonValue] = {}

    def of(self, step: Operation) -> TritonValue:
        """Return what an operation is."""
        if step.op in PRODUCTS:
            return self.product(step)
        match step.op:
            case "sum" | "max":
                x, over = self.values[step.operands[0]], names(step.attrs, "over")
                value = self.reduced(x, over, step.op)
                floored = f"tl.maximum({value.text}, {LOWEST})"
                return replace(value, text=floored) if step.op == "max" else value
            case "reduce_max":
                return self.reduce_max(self.values[step.operands[0]], names(step.attrs, "over"))
            case "rms":
                return self.root_mean_square(step)
        return self.function(step)

    def function(self, step: Operation) -> TritonValue:
        """Return a function of one element, or other variables of the same elements."""
        values = [self.values[name] for name in step.operands]
        match step.op:
            case "scale":
                return TritonValue(
                    f"{values[0].wide} * {_number(step.attrs['value'])}", values[0].axes, True
                )
            case "shift":
                text = f"{values[0].wide} + {_number(step.attrs['value'])}"
                return TritonValue(text, values[0].axes, True)
            case "rename":
                return renamed(values[0], str(step.attrs["variable"]), str(step.attrs["into"]))
            case "repeat":
                return values[0]
            case "split" | "merge":
                return self._reshaped(step, values[0])
            case "window":
                where = f"{self._where}: {step.output}"
                return windowed(values[0], Window.of(step.attrs), self.axes, where)
        if step.op not in SPELLINGS:
            raise InputError(f"{self._where}: {step.output}: Triton has no {step.op}")
        axes = union(values)
        operands = [self.axes.aligned(value, axes, value.wide) for value in values]
        value = _number(step.attrs.get("value", 0.0))
        return TritonValue(SPELLINGS[step.op].triton.format(*operands, value=value), axes, True)

    def _reshaped(self, step: Operation, value: TritonValue) -> TritonValue:
        """Return other variables of the same elements, which must be without padding."""
        before = self._dims[step.operands[0]]
        if step.op == "merge":
            merged = names(step.attrs, "variables")
            order = (
                *without(before, merged),
                *(d for n in merged for d in before if d.variable == n),
            )
        else:
            order = before
        axes = real(self._operation_dims(step, before))
        source = real(order)
        if any(self.axes.length(dim) != dim.size for dim in (*source, *axes)):
            raise InputError(
                f"{self._where}: {step.output}: Triton reshapes nothing that has padding"
            )
        text = self.axes.spread(value, source, value.text)
        return TritonValue(f"tl.reshape({text}, {self.axes.shape(axes)})", axes, value.is_wide)

    def _operation_dims(self, step: Operation, before: Dims) -> Dims:
        if step.output in self._dims:
            return self._dims[step.output]
        return before

    def product(self, step: Operation, total: str = "") -> TritonValue:
        """Return a product, added to ``total``."""
        over = names(step.attrs, "over")
        if step.op == "matmul":
            a, b = self._in_order(step.operands[0], step.operands[1], over)
            return self._dot(a, b, over, total)
        w, x, y, z = step.operands
        first = self._dot(w, y, over[:1], total)
        return self._dot(x, z, over[1:], first.text)

    def _in_order(self, a: str, b: str, over: Sequence[str]) -> tuple[str, str]:
        """Return a product's operands with the one first that need not be transposed then.

        Computed values lie in registers, and would go through shared memory.
        """
        return (b, a) if self._turned(b, a, over) < self._turned(a, b, over) else (a, b)

    def _turned(self, left: str, right: str, over: Sequence[str]) -> tuple[int, int]:
        """Return how many computed tensors, and how many tiles, are transposed in that order."""
        values = self.values[left], self.values[right]
        ends = values[0].axes[-1:], values[1].axes[-1:]
        are_turned = (
            bool(ends[0]) and ends[0][0].variable not in over,
            bool(ends[1]) and ends[1][0].variable in over,
        )
        turned = [v for v, is_turned in zip(values, are_turned, strict=True) if is_turned]
        tiles = sum(value.text in self._tiles for value in turned)
        return len(turned) - tiles, tiles

    def _dot(self, a: str, b: str, over: Sequence[str], total: str) -> TritonValue:
        left, right = self.values[a], self.values[b]
        left_dims, right_dims = self._full_axes(a, left), self._full_axes(b, right)
        summed = tuple(dim for dim in left_dims if dim.variable in over)
        shared = {dim for dim in left_dims if dim in right_dims and dim not in summed}
        batch = tuple(dim for dim in left_dims if dim in shared)
        rows = tuple(dim for dim in left_dims if dim not in shared and dim not in summed)
        columns = tuple(dim for dim in right_dims if dim not in shared and dim not in summed)
        if not summed:  # one element: the product is not a sum
            axes = batch + rows + columns
            x, y = (self.axes.aligned(v, axes, v.wide) for v in (left, right))
            if not total:
                return TritonValue(f"{x} * {y}", axes, True)
            return TritonValue(f"{total} + {self.existing(f'{x} * {y}', axes)}", axes, True)
        operands = [
            self.axes.matrix(left, (batch, rows, summed), self._narrow(left, over)),
            self.axes.matrix(right, (batch, summed, columns), self._narrow(right, over)),
        ]
        axes = batch + rows + columns
        groups = [group for place, group in enumerate((batch, rows, columns)) if place or group]
        shape = [count_of(self.axes.shape(group)) for group in groups]
        is_plain = all(len(group) == 1 for group in groups)
        arguments = ", ".join(operands)
        if total and is_plain:
            arguments += f", acc={total}"
        if self._dtype == "float32":
            arguments += ', input_precision="ieee"'
        text = f"tl.dot({arguments})"
        if not is_plain and axes:
            text = f"tl.reshape({text}, {self.axes.shape(axes)})"
        elif not is_plain:
            text = f"tl.sum(tl.reshape({text}, {[count_of(shape)]}), axis=0)"
        if total and not is_plain:
            text = f"{total} + {text}"
        return TritonValue(text, axes, True)

    def _full_axes(self, name: str, value: TritonValue) -> Dims:
        return real(self._dims[name]) if name in self._dims else value.axes

    def _narrow(self, value: TritonValue, over: Sequence[str]) -> str:
        """Return a product's operand as the kernel's elements, zero in the padding of what is summed.

        Elements that the loop's last iteration lacks are zero, too: it may add up the product's rows and
        columns.
        """
        if not value.is_wide or (self._dtype == "float32" and value.text in self._tiles):
            return value.text  # a tile, whose padding is zero
        text = value.text
        if mask := self.axes.mask(value.axes, [*over, *self._looped(value.axes)]):
            text = f"tl.where({mask}, {text}, 0.0)"
        return text if self._dtype == "float32" else f"{text}.to({TYPES[self._dtype]})"

    def existing(self, text: str, axes: Dims) -> str:
        """Return an expression that is zero where the loop's last iteration has no element."""
        looped = self._looped(axes)
        return f"tl.where({self.axes.mask(axes, looped)}, {text}, 0.0)" if looped else text

    def _looped(self, axes: Dims) -> list[str]:
        """Return the variables that a tensor has fewer of in the loop's last iteration."""
        return [dim.variable for dim in axes if dim.whole and dim.variable in self.axes.looped]

    def reduced(
        self, value: TritonValue, over: Sequence[str], op: str, text: str = ""
    ) -> TritonValue:
        """Return sums or maxima; ``text`` is an expression of the same axes instead of the tensor."""
        text = text or value.wide
        axes = value.axes
        present = [dim for dim in axes if dim.variable in over]
        if any(map(self.axes.is_padded, present)):
            none = 'float("-inf")' if op == "max" else "0.0"
            mask = self.axes.mask(axes, [dim.variable for dim in present])
            text = f"tl.where({mask}, {text}, {none})"
        for dim in present:
            text = f"tl.{op}({text}, axis={axes.index(dim)})"
            axes = tuple(other for other in axes if other != dim)
        return TritonValue(text, axes, True)

    def reduce_max(self, value: TritonValue, over: Sequence[str]) -> TritonValue:
        """Return the largest elements; NaN where one is, which Triton's maxima leave out."""
        largest = self.reduced(value, over, "max")
        has_nan = self.reduced(
            value, over, "max", f"tl.where({value.text} == {value.text}, 0.0, 1.0)"
        )
        text = f'tl.where({has_nan.text} > 0.0, float("nan"), {largest.text})'
        return replace(largest, text=text)

    def squares(self, value: TritonValue, over: Sequence[str]) -> TritonValue:
        """Return sums of squares."""
        return self.reduced(value, over, "sum", f"{value.wide} * {value.wide}")

    def root_mean_square(self, step: Operation) -> TritonValue:
        """Return roots of means of squares."""
        over = names(step.attrs, "over")
        value = self.values[step.operands[0]]
        return root_of(self.squares(value, over), size_of(value, over), step.attrs["epsilon"])


def root_of(squares: TritonValue, size: int, epsilon: object) -> TritonValue:
    """Return the roots of means of so many squares."""
    text = f"tl.sqrt({squares.text} * {_number(1.0 / size)} + {_number(epsilon)})"
    return TritonValue(text, squares.axes, True)


def size_of(value: TritonValue, over: Sequence[str]) -> int:
    """Return how many elements are reduced to one."""
    return count_of([dim.size for dim in value.axes if dim.variable in over])


def _number(value: object) -> str:
    number = float(cast(float, value))
    return repr(number) if math.isfinite(number) else f'float("{number}")'
