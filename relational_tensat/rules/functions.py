"""The functions that rules may use in conditions and in the attributes of targets.

They are pure functions of attribute values and of the types of tensors. Where one does not apply
(an index out of range, a tuple where a tensor is expected), the rule does not apply: no error.
Adding a function is adding one ``@function``: the parser, the evaluation and the listing find it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from relational_tensat.errors import ShapeError, UsageError, nearest
from relational_tensat.graph.types import TensorType
from relational_tensat.ops.padding import Padding, output_sizes, resolve_padding
from relational_tensat.ops.shapes import broadcast as broadcast_shapes

Ints: TypeAlias = tuple[int, ...]


class Inapplicable(Exception):  # noqa: N818 - it is no error: the rule just does not apply here
    """A function was given what it is not defined for."""


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


#: What says whether a value is of a kind of argument.
_KINDS: dict[str, Callable[[object], bool]] = {
    "any": lambda value: True,
    "bool": lambda value: isinstance(value, bool),
    "int": _is_int,
    "number": lambda value: _is_int(value) or isinstance(value, float),
    "ints": lambda value: isinstance(value, tuple) and all(map(_is_int, value)),
    "tensor": lambda value: isinstance(value, TensorType),
}


@dataclass(frozen=True, slots=True)
class Function:
    """A function that rules may call.

    Attributes:
        params: the kinds of the arguments: tensor, int, number, bool, ints or any; the last one
            ends in ``...`` if it may be repeated.
        lazy: arguments are evaluated only as far as needed (``and``, ``or``, ``if``).
        meaning: one line.
    """

    name: str
    params: tuple[str, ...]
    meaning: str
    call: Callable[..., Any]
    lazy: bool = False

    @property
    def signature(self) -> str:
        """How it is written, e.g. ``(dim tensor int)``."""
        return f"({' '.join((self.name, *self.params))})"

    def takes(self, count: int) -> bool:
        """Whether it can be called with that many arguments."""
        if self.params and self.params[-1].endswith("..."):
            return count >= len(self.params)
        return count == len(self.params)

    def kind(self, index: int) -> str:
        """Return the kind of an argument."""
        return self.params[min(index, len(self.params) - 1)].removesuffix("...")

    def check(self, index: int) -> Callable[[object], bool]:
        """Return what says whether a value is of the kind of an argument."""
        return _KINDS[self.kind(index)]


_FUNCTIONS: dict[str, Function] = {}


def function(
    name: str, *params: str, lazy: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a Python function known to rules; its docstring is the meaning."""

    def add(call: Callable[..., Any]) -> Callable[..., Any]:
        meaning = " ".join((call.__doc__ or "").split())
        _FUNCTIONS[name] = Function(name, params, meaning, call, lazy)
        return call

    return add


def functions() -> dict[str, Function]:
    """Return all functions by name, in the order of this file."""
    return dict(_FUNCTIONS)


def get_function(name: str) -> Function:
    """Return the function of that name.

    Raises:
        UsageError: there is none; names the nearest.
    """
    try:
        return _FUNCTIONS[name]
    except KeyError:
        hint = nearest(name, _FUNCTIONS)
        raise UsageError(f"unknown function {name!r}{hint}") from None


# --- numbers ---


@function("+", "number...")
def _plus(*values: float) -> float:
    """The sum of numbers."""
    return sum(values)


@function("-", "number", "number")
def _minus(a: float, b: float) -> float:
    """The first number less the second."""
    return a - b


@function("*", "number...")
def _times(*values: float) -> float:
    """The product of numbers."""
    return math.prod(values)


@function("//", "int", "int")
def _quotient(a: int, b: int) -> int:
    """The quotient, rounded down."""
    if b == 0:
        raise Inapplicable
    return a // b


@function("mod", "int", "int")
def _mod(a: int, b: int) -> int:
    """The remainder of the quotient that is rounded down."""
    if b == 0:
        raise Inapplicable
    return a % b


@function("max", "number...")
def _max(*values: float) -> float:
    """The largest of numbers."""
    return max(values)


@function("min", "number...")
def _min(*values: float) -> float:
    """The smallest of numbers."""
    return min(values)


# --- truth ---


@function("=", "any", "any")
def _equal(a: object, b: object) -> bool:
    """Whether two values are equal."""
    return a == b


@function("!=", "any", "any")
def _unequal(a: object, b: object) -> bool:
    """Whether two values differ."""
    return a != b


@function("<", "number", "number")
def _less(a: float, b: float) -> bool:
    """Whether the first number is below the second."""
    return a < b


@function("<=", "number", "number")
def _at_most(a: float, b: float) -> bool:
    """Whether the first number is at most the second."""
    return a <= b


@function("and", "bool...", lazy=True)
def _and(*values: Callable[[], object]) -> bool:
    """Whether all hold; those after the first that does not are not looked at."""
    return all(value() for value in values)


@function("or", "bool...", lazy=True)
def _or(*values: Callable[[], object]) -> bool:
    """Whether one holds; those after the first that does are not looked at."""
    return any(value() for value in values)


@function("not", "bool")
def _not(value: bool) -> bool:
    """Whether it does not hold."""
    return not value


@function("if", "bool", "any", "any", lazy=True)
def _if(condition: Callable[[], Any], yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """The second value if the first holds, else the third."""
    return yes() if condition() else no()


# --- lists ---


@function("list", "any...")
def _list(*values: Any) -> tuple[Any, ...]:
    """The list of the values."""
    return values


@function("get", "ints", "int")
def _get(values: Ints, index: int) -> int:
    """Element ``index`` of a list; negative counts from the back."""
    return values[_index(index, len(values))]


@function("len", "ints")
def _len(values: Ints) -> int:
    """The length of a list."""
    return len(values)


@function("sum", "ints")
def _sum(values: Ints) -> int:
    """The sum of a list."""
    return sum(values)


@function("product", "ints")
def _product(values: Ints) -> int:
    """The product of a list; 1 of an empty one."""
    return math.prod(values)


@function("join", "ints...")
def _join(*lists: Ints) -> Ints:
    """Lists one after the other."""
    return sum(lists, ())


@function("take", "ints", "int")
def _take(values: Ints, count: int) -> Ints:
    """The first ``count`` elements; negative: all but the last ones."""
    return values[:count]


@function("drop", "ints", "int")
def _drop(values: Ints, count: int) -> Ints:
    """All but the first ``count`` elements; negative: the last ones."""
    return values[count:]


@function("replace", "ints", "int", "int")
def _replace(values: Ints, index: int, value: int) -> Ints:
    """The list with element ``index`` replaced by a value."""
    at = _index(index, len(values))
    return (*values[:at], value, *values[at + 1 :])


@function("repeat", "int", "int")
def _repeat(value: int, count: int) -> Ints:
    """The list of ``count`` times the value."""
    if not 0 <= count <= 64:
        raise Inapplicable
    return (value,) * count


@function("range", "int")
def _range(count: int) -> Ints:
    """The list 0, 1, … ``count`` - 1."""
    if not 0 <= count <= 64:
        raise Inapplicable
    return tuple(range(count))


@function("index-of", "ints", "int")
def _index_of(values: Ints, value: int) -> int:
    """Where a value first stands in a list."""
    if value not in values:
        raise Inapplicable
    return values.index(value)


@function("contains", "ints", "int")
def _contains(values: Ints, value: int) -> bool:
    """Whether a value stands in a list."""
    return value in values


@function("permute", "ints", "ints")
def _permute(values: Ints, perm: Ints) -> Ints:
    """The elements of the first list at the places that the second names: a transposed shape."""
    if any(not 0 <= each < len(values) for each in perm):
        raise Inapplicable
    return tuple(values[each] for each in perm)


@function("without", "ints", "ints")
def _without(values: Ints, indices: Ints) -> Ints:
    """The list without the elements at the places that the second one names."""
    return tuple(value for index, value in enumerate(values) if index not in indices)


@function("add-lists", "ints", "ints")
def _add_lists(a: Ints, b: Ints) -> Ints:
    """Two lists of one length, added element by element."""
    if len(a) != len(b):
        raise Inapplicable
    return tuple(x + y for x, y in zip(a, b, strict=True))


@function("inverse", "ints")
def _inverse(perm: Ints) -> Ints:
    """The permutation that undoes a permutation."""
    if sorted(perm) != list(range(len(perm))):
        raise Inapplicable
    return tuple(perm.index(axis) for axis in range(len(perm)))


@function("moves-only-ones", "ints", "ints")
def _moves_only_ones(shape: Ints, perm: Ints) -> bool:
    """Whether a transpose of that shape keeps the order of the axes that are longer than 1."""
    long = [axis for axis in perm if 0 <= axis < len(shape) and shape[axis] != 1]
    return long == sorted(long)


def _index(index: int, length: int) -> int:
    if not -length <= index < length:
        raise Inapplicable
    return index % length


# --- tensors ---


@function("rank", "tensor")
def _rank(tensor: TensorType) -> int:
    """The number of dimensions."""
    return len(tensor.shape)


@function("shape", "tensor")
def _shape(tensor: TensorType) -> Ints:
    """The list of the dimensions."""
    return tensor.shape


@function("dim", "tensor", "int")
def _dim(tensor: TensorType, axis: int) -> int:
    """The size of a dimension; negative counts from the back."""
    return tensor.shape[_index(axis, len(tensor.shape))]


@function("last", "tensor")
def _last(tensor: TensorType) -> int:
    """The last axis: the rank less one."""
    if not tensor.shape:
        raise Inapplicable
    return len(tensor.shape) - 1


@function("size", "tensor")
def _size(tensor: TensorType) -> int:
    """The number of elements."""
    return tensor.size


@function("dtype", "tensor")
def _dtype(tensor: TensorType) -> str:
    """The element type's name."""
    return tensor.dtype


@function("is-float", "tensor")
def _is_float(tensor: TensorType) -> bool:
    """Whether the elements are real numbers."""
    return tensor.is_float


@function("batch", "tensor")
def _batch(tensor: TensorType) -> Ints:
    """All dimensions but the last two: those over which a matmul repeats."""
    if len(tensor.shape) < 2:
        raise Inapplicable
    return tensor.shape[:-2]


@function("spatial", "tensor")
def _spatial(tensor: TensorType) -> Ints:
    """All dimensions but the first two: image sizes of an operand, kernel sizes of its weights."""
    return tensor.shape[2:]


@function("broadcast", "ints", "ints")
def _broadcast(a: Ints, b: Ints) -> Ints:
    """The shape that two shapes broadcast to, as in NumPy."""
    try:
        return broadcast_shapes("broadcast", a, b)
    except ShapeError:
        raise Inapplicable from None


@function("same-except", "tensor", "tensor", "int")
def _same_except(a: TensorType, b: TensorType, axis: int) -> bool:
    """Whether two shapes have one rank and are equal on all axes but one."""
    at = _index(axis, len(a.shape))
    without = (*a.shape[:at], *a.shape[at + 1 :])
    return len(a.shape) == len(b.shape) and without == (*b.shape[:at], *b.shape[at + 1 :])


@function("varies-along", "tensor", "int", "int")
def _varies_along(tensor: TensorType, rank: int, axis: int) -> bool:
    """Whether a tensor that is broadcast to a rank has size 1 on all axes but one."""
    missing = rank - len(tensor.shape)
    at = _index(axis, rank)
    return missing >= 0 and all(
        size == 1 or missing + own == at for own, size in enumerate(tensor.shape)
    )


# --- convolutions ---


@function("groups", "tensor", "tensor")
def _groups(x: TensorType, w: TensorType) -> int:
    """The groups of a convolution of an operand with weights."""
    if len(x.shape) < 3 or len(w.shape) < 3 or x.shape[1] % w.shape[1]:
        raise Inapplicable
    return x.shape[1] // w.shape[1]


@function("pads", "ints", "ints", "ints", "any", "ints")
def _pads(sizes: Ints, kernel: Ints, stride: Ints, pad: Padding, dilation: Ints) -> Ints:
    """The padding in numbers, begins then ends; of sizes, kernel, stride, pad and dilation."""
    begins, ends = _resolved(sizes, kernel, stride, pad, dilation)
    return (*begins, *ends)


@function("windows", "ints", "ints", "ints", "any", "ints")
def _windows(sizes: Ints, kernel: Ints, stride: Ints, pad: Padding, dilation: Ints) -> Ints:
    """How many windows fit; of sizes, kernel, stride, pad and dilation."""
    pads = _resolved(sizes, kernel, stride, pad, dilation)
    try:
        return output_sizes("windows", sizes, kernel, stride, dilation or (1,) * len(sizes), pads)
    except ShapeError:
        raise Inapplicable from None


@function("enlargeable", "ints", "ints", "ints", "ints", "any", "any", "ints")
def _enlargeable(
    sizes: Ints, small: Ints, large: Ints, stride: Ints, pad: Padding, pad_large: Padding,
    dilation: Ints,
) -> bool:  # fmt: skip
    """Whether a small kernel, zeros around it, has its windows where the large one has them.

    Of sizes, both kernels, stride, both pads and dilation.
    """
    begins, _ = _resolved(sizes, small, stride, pad, dilation)
    begins_large, _ = _resolved(sizes, large, stride, pad_large, dilation)
    steps = dilation or (1,) * len(sizes)
    moved = all(
        inner <= outer and begin + (outer - inner) // 2 * step == begin_large
        for inner, outer, step, begin, begin_large in zip(
            small, large, steps, begins, begins_large, strict=True
        )
    )
    small_windows = _windows(sizes, small, stride, pad, dilation)
    return moved and small_windows == _windows(sizes, large, stride, pad_large, dilation)


def _resolved(
    sizes: Ints, kernel: Ints, stride: Ints, pad: Padding, dilation: Ints
) -> tuple[Ints, Ints]:
    rank = len(sizes)
    if len(kernel) != rank or len(stride) != rank or min(*stride, *kernel, 1) < 1:
        raise Inapplicable
    if len(dilation) not in (0, rank):
        raise Inapplicable
    try:
        return resolve_padding(pad, sizes, kernel, stride, dilation or (1,) * rank)
    except ShapeError:
        raise Inapplicable from None
