"""Functions of numbers, truth values, lists and element types.

Functions of lists of whole numbers work place by place: bounds of slices, widths of borders, axes. Element
types are given by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from relational_tensat.rules.functions.registry import Inapplicable, function
from relational_tensat.tensor.floats import integer_range, rounded
from relational_tensat.tensor.operators.work_steps import moves_one_axis
from relational_tensat.tensor.types import DTYPE_BYTES, FLOAT_DTYPES

Ints: TypeAlias = tuple[int, ...]

#: Models hold constants such as 1/√2 in float32, often as quotients: off by some 1e-7, relatively.
FLOAT32_TOLERANCE = 3e-7


def place(index: int, length: int) -> int:
    """Return a place counted from the front; a negative one counts from the back.

    Raises:
        Inapplicable: the tensor does not have that place.
    """
    if not -length <= index < length:
        raise Inapplicable
    return index % length


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


@function("/", "number", "number")
def _ratio(a: float, b: float) -> float:
    """The quotient of two numbers, rounded to a float."""
    if b == 0:
        raise Inapplicable
    return a / b


@function("mod", "int", "int")
def _mod(a: int, b: int) -> int:
    """The remainder of the quotient that is rounded down."""
    if b == 0:
        raise Inapplicable
    return a % b


@function("whole", "number")
def _whole(value: float) -> int:
    """A number without fraction as a whole number."""
    if not math.isfinite(value) or value != math.floor(value):
        raise Inapplicable
    return int(value)


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


@function("close", "number", "number")
def _close(a: float, b: float) -> bool:
    """Whether two numbers are equal up to the rounding of a few float32 operations."""
    return math.isclose(a, b, rel_tol=FLOAT32_TOLERANCE)


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
    return values[place(index, len(values))]


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
    at = place(index, len(values))
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
    if any(not 0 <= index < len(values) for index in perm):
        raise Inapplicable
    return tuple(values[index] for index in perm)


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


@function("ones", "ints")
def _ones(values: Ints) -> Ints:
    """The places of the ones in a list: the axes of a shape that have one element."""
    return tuple(index for index, value in enumerate(values) if value == 1)


@function("perm-without", "ints", "ints")
def _perm_without(perm: Ints, axes: Ints) -> Ints:
    """The permutation of the other axes, where those that the second list names are left out."""
    if sorted(perm) != list(range(len(perm))):
        raise Inapplicable
    others = [axis for axis in range(len(perm)) if axis not in axes]
    return tuple(others.index(axis) for axis in perm if axis not in axes)


@function("moves-one-axis", "ints")
def _moves_one_axis(perm: Ints) -> bool:
    """Whether all axes but one stay in order."""
    return moves_one_axis(perm)


@function("moves-only-ones", "ints", "ints")
def _moves_only_ones(shape: Ints, perm: Ints) -> bool:
    """Whether a transpose of that shape keeps the order of the axes that are longer than 1."""
    long = [axis for axis in perm if 0 <= axis < len(shape) and shape[axis] != 1]
    return long == sorted(long)


@function("place", "int", "int")
def _place(index: int, length: int) -> int:
    """An index into that many elements, counted from the front; a negative one is from the back."""
    return place(index, length)


@function("scatter", "ints", "ints", "ints")
def _scatter(values: Ints, places: Ints, replacements: Ints) -> Ints:
    """The list with the elements at some places replaced, each by its own replacement."""
    if len(places) != len(replacements):
        raise Inapplicable
    result = list(values)
    for index, value in zip(places, replacements, strict=True):
        result[place(index, len(result))] = value
    return tuple(result)


@function("subtract-lists", "ints", "ints")
def _subtract_lists(a: Ints, b: Ints) -> Ints:
    """Two lists of one length, the second subtracted element by element."""
    return tuple(x - y for x, y in _pairs(a, b))


@function("multiply-lists", "ints", "ints")
def _multiply_lists(a: Ints, b: Ints) -> Ints:
    """Two lists of one length, multiplied element by element."""
    return tuple(x * y for x, y in _pairs(a, b))


@function("each-at-most", "ints", "ints")
def _each_at_most(a: Ints, b: Ints) -> bool:
    """Whether each element of a list is at most the one at the same place of another list."""
    return all(x <= y for x, y in _pairs(a, b))


@function("without-zeros", "ints")
def _without_zeros(values: Ints) -> Ints:
    """The elements that are not 0."""
    return tuple(value for value in values if value)


@function("union", "ints", "ints")
def _union(a: Ints, b: Ints) -> Ints:
    """The numbers that are in one of two lists, ascending, each once."""
    return tuple(sorted({*a, *b}))


@function("ranks", "ints")
def _ranks(values: Ints) -> Ints:
    """For each of different numbers, how many of them are smaller."""
    if len(set(values)) != len(values):
        raise Inapplicable
    return tuple(sorted(values).index(value) for value in values)


@function("counts", "ints", "ints", "ints")
def _counts(starts: Ints, ends: Ints, steps: Ints) -> Ints:
    """How many elements slices of these starts, ends and steps take."""
    if len(starts) != len(steps) or any(step < 1 for step in steps):
        raise Inapplicable
    bounds = zip(_pairs(starts, ends), steps, strict=True)
    return tuple(len(range(start, end, step)) for (start, end), step in bounds)


@function("padded-axes", "ints")
def _padded_axes(pads: Ints) -> Ints:
    """The axes on which a list of pads, begins then ends, adds a border."""
    rank = len(pads) // 2
    return tuple(axis for axis in range(rank) if pads[axis] or pads[rank + axis])


def _pairs(a: Ints, b: Ints) -> list[tuple[int, int]]:
    if len(a) != len(b):
        raise Inapplicable
    return list(zip(a, b, strict=True))


#: Bits of the fraction, the leading one included: whole numbers of so many bits are exact.
_FRACTION_BITS: dict[str, int] = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
#: Per float type, those that have all of its values.
_WIDER_FLOATS = {
    "bfloat16": {"bfloat16", "float32", "float64"},
    "float16": {"float16", "float32", "float64"},
    "float32": {"float32", "float64"},
    "float64": {"float64"},
}


@function("holds-all", "any", "any")
def _holds_all(wide: object, narrow: object) -> bool:
    """Whether an element type has every value of a second one, so that conversion loses nothing."""
    if wide not in DTYPE_BYTES or narrow not in DTYPE_BYTES:
        return False
    if narrow in FLOAT_DTYPES:
        return wide in _WIDER_FLOATS[str(narrow)]
    low, high = integer_range(str(narrow))
    if wide in FLOAT_DTYPES:
        exact = 1 << _FRACTION_BITS[str(wide)]
        return -exact <= low and high <= exact
    wide_low, wide_high = integer_range(str(wide))
    return wide_low <= low and high <= wide_high


@function("has-number", "any", "number")
def _has_number(dtype: object, value: float) -> bool:
    """Whether an element type has a number as it is, not rounded."""
    if dtype in FLOAT_DTYPES:
        return bool(rounded(value, str(dtype)) == value)
    if dtype not in DTYPE_BYTES or value != math.floor(value):
        return False
    low, high = integer_range(str(dtype))
    return bool(low <= value <= high)
