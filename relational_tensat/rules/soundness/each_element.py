"""Laws that hold element by element and round nothing, on very many elements at once.

Each operator computes an element from the operands' elements at its place, so shapes do not matter, and one
flat tensor has as many cases as it has elements: all values of a type of 8 or 16 bits, all pairs of two of
8 bits, and where there are more, numbers of every length in bits beside the ends of their types.

A law of integers is also asked of z3, which proves it for all numbers of a type, and so for all shapes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any

import numpy as np

from relational_tensat.rules.instance import Instance, TargetNode
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.rules.soundness.solver import has_z3, is_refuted
from relational_tensat.tensor.floats import FLOAT_FORMATS, integer_range, rounded
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.operators.attributes import float_of
from relational_tensat.tensor.types import Array, TensorType, numpy_dtype

#: The operators that compute element by element, on integers, and that z3 is told of.
_ELEMENTWISE = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "relu", "cast", "identity", "dropout", "fill",
})  # fmt: skip
#: What z3 may spend on one law in one type before it is tried on numbers only, in its own unit.
_EFFORT = 1_000_000
#: Those that compute element by element.
_FLAT = _ELEMENTWISE | {
    "clip", "where", "equal", "less", "less_or_equal", "is_nan",
    "logical_and", "logical_or", "logical_not",
}  # fmt: skip
#: Elements of one flat tensor, at most.
_MOST = 1 << 18
#: Values of a type that has too many, those of one sign and length in bits, and partners of each value.
_PER_LENGTH = 8
_PARTNERS = 6


def is_flat(sides: Sides) -> bool:
    """Whether both sides compute element by element."""
    return _is_made_of(sides, _FLAT)


def _is_made_of(sides: Sides, operators: Collection[str]) -> bool:
    nodes = (*sides.left.nodes, *sides.right.nodes)
    kinds = (*sides.var_types, *(node.type for node in nodes))
    return (
        bool(sides.var_types)
        and all(node.op in operators for node in nodes)
        and all(isinstance(kind, TensorType) for kind in kinds)
    )


def cases(types: Sequence[TensorType]) -> tuple[list[Array], bool]:
    """Return flat operands of given types, and whether they are all that there are."""
    columns = [_every(kind.dtype) for kind in types]
    values = [_some(kind.dtype) if c is None else c for kind, c in zip(types, columns, strict=True)]
    everything = all(column is not None for column in columns)
    if math.prod(len(column) for column in values) <= _MOST:
        return _product(values), everything
    rng = np.random.default_rng(0)
    blocks: list[list[Array]] = []
    for index, column in enumerate(values):  # each value of each, beside some values of the others
        longest = np.tile(column, _PARTNERS)
        blocks.append([
            longest if i == index else other[rng.integers(0, len(other), len(longest))]
            for i, other in enumerate(values)
        ])  # fmt: skip
    few = [column[rng.integers(0, len(column), 24)] for column in values]
    if len(values) <= 3:
        blocks.append(
            _product([np.concatenate((e, f)) for e, f in zip(_ends(types), few, strict=True)])
        )
    return [np.concatenate(parts) for parts in zip(*blocks, strict=True)], False


def first_wrong(sides: Sides, operands: Sequence[Array], everywhere: bool = True) -> int | None:
    """Return the place of the first element where a law fails, left side defined; None if nowhere.

    Args:
        operands: flat tensors of one length.
        everywhere: a float instead of an infinity or NaN does not matter.
    """
    with np.errstate(all="ignore"):
        left, left_open = _flat(sides.left, operands)
        right, right_open = _flat(sides.right, operands)
        wrong = ~left_open & right_open
        for a, b in zip(left, right, strict=True):
            differs = a != b
            if a.dtype.kind == "f":
                differs &= np.isfinite(a) if everywhere else ~(np.isnan(a) & np.isnan(b))
            wrong = wrong | (~left_open & differs)
    places = np.flatnonzero(wrong)
    return int(places[0]) if len(places) else None


def _flat(side: Instance, operands: Sequence[Array]) -> tuple[list[Any], Any]:
    """Return the results of a side, and where they are undefined."""
    values: list[Any] = list(operands)
    undefined = np.zeros(operands[0].shape, bool)
    for node in side.nodes:
        arguments = [values[child] for child in node.children]
        kind = node.type
        assert isinstance(kind, TensorType)
        attrs = dict(node.attrs)
        if node.op == "fill":
            number = float_of(attrs, "value")
            value = rounded(number, kind.dtype) if kind.is_float else np.array(int(number))
            values.append(value if kind.is_float else value.astype(numpy_dtype(kind.dtype)))
            continue
        if node.op == "div":
            open_ = arguments[1] == 0
            if arguments[0].dtype.kind == "i":
                open_ |= (arguments[0] == np.iinfo(arguments[0].dtype).min) & (arguments[1] == -1)
            undefined |= open_
            arguments[1] = np.where(open_, np.ones_like(arguments[1]), arguments[1])
        if node.op == "cast" and arguments[0].dtype.kind == "f" and not kind.is_float:
            undefined |= _beyond(arguments[0], kind)
        values.append(computed(node.op, arguments, node.operand_types, attrs, kind))
    return [np.broadcast_to(values[root], undefined.shape) for root in side.roots], undefined


def _beyond(values: Any, kind: TensorType) -> Any:
    """Return where an integer type has no number for a float."""
    if kind.dtype == "bool":
        return np.zeros(values.shape, bool)
    low, high = integer_range(kind.dtype)
    cut = np.trunc(values)
    return ~((cut >= float(low)) & (cut <= float(high)) & (np.abs(cut) < 2.0**62))


def _product(columns: Sequence[Array]) -> list[Array]:
    return [np.asarray(grid).reshape(-1) for grid in np.meshgrid(*columns, indexing="ij")]


def _ends(types: Sequence[TensorType]) -> list[Array]:
    return [_some(kind.dtype)[:24] for kind in types]


@cache
def _every(dtype: str) -> Array | None:
    """Return all values of a type of 8 or 16 bits; None of a larger one."""
    if dtype == "float16":
        return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    if dtype == "bfloat16":
        words = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
        with np.errstate(invalid="ignore"):  # NaN that signal
            return words.view(np.float32).astype(np.float64)
    if dtype in FLOAT_FORMATS or numpy_dtype(dtype).itemsize > 2:
        return None
    low, high = integer_range(dtype)
    return np.arange(low, high + 1).astype(numpy_dtype(dtype))


@cache
def _some(dtype: str) -> Array:
    """Return values of a type: the ends first, then numbers of every length in bits, of both signs."""
    rng = np.random.default_rng(0)
    if dtype in FLOAT_FORMATS:
        format_ = FLOAT_FORMATS[dtype]
        ends = (0.0, np.inf, -np.inf, np.nan, format_.largest, -format_.largest, format_.smallest)
        exponents = np.arange(max(format_.lowest, -60), min(format_.highest, 66))
        sizes = np.ldexp(rng.uniform(0.5, 1.0, (_PER_LENGTH, len(exponents))), exponents)
        whole = np.rint(sizes[:, exponents > 0])
        numbers = np.concatenate((sizes.reshape(-1), whole.reshape(-1), np.ldexp(1.0, exponents)))
        return rounded(np.concatenate((ends, numbers, -numbers)), dtype)
    low, high = integer_range(dtype)
    chosen = [low, high, 0, 1, high - 1, low + 1, high // 2 + 1]
    for bits in range(2, high.bit_length() + 1):
        top = (1 << bits) - 1
        any_ = rng.integers(top // 2 + 1, top, _PER_LENGTH, dtype=np.uint64, endpoint=True)
        sizes_of_length = [*any_.tolist(), top, top - 1]
        pairs = itertools.product(sizes_of_length, (1, -1))
        chosen += [sign * size for size, sign in pairs if low <= sign * size]
    return np.array(list(dict.fromkeys(chosen)), numpy_dtype(dtype))


def is_elementwise(sides: Sides) -> bool:
    """Whether both sides are made of operators that z3 is told of, on integers and booleans alone."""
    nodes = (*sides.left.nodes, *sides.right.nodes)
    types = (*sides.var_types, *(node.type for node in nodes))
    return _is_made_of(sides, _ELEMENTWISE) and not any(
        kind.is_float for kind in types if isinstance(kind, TensorType)
    )


def is_proved(sides: Sides) -> bool:
    """Whether z3 proves a law for the element types at hand; no where it is missing or gives up."""
    if not has_z3():
        return False
    import z3

    variables = [
        z3.Bool(f"x{i}") if kind.dtype == "bool" else z3.BitVec(f"x{i}", _bits(kind))
        for i, kind in enumerate(sides.var_types)
    ]
    try:
        left, left_open = _terms(sides.left, variables)
        right, right_open = _terms(sides.right, variables)
    except KeyError:  # an operator without a meaning on these types
        return False
    differs = [
        left_value != right_value for left_value, right_value in zip(left, right, strict=True)
    ]
    return is_refuted([z3.Not(z3.Or(left_open)), z3.Or(*differs, *right_open)], _EFFORT)


def _kind(node: TargetNode) -> TensorType:
    if not isinstance(node.type, TensorType):
        raise KeyError(node.op)
    return node.type


def _number(node: TargetNode) -> int:
    return int(float_of(dict(node.attrs), "value"))


def _bits(kind: TensorType) -> int:
    return numpy_dtype(kind.dtype).itemsize * 8


def _terms(side: Instance, variables: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the results as terms, and the conditions under which they are undefined."""
    values, undefined = list(variables), []
    for node in side.nodes:
        arguments = [values[child] for child in node.children]
        if node.op == "div":
            undefined.append(_open_quotient(node, *arguments))
        values.append(_TERMS[node.op](node, *arguments))
    return [values[root] for root in side.roots], undefined


def _signed(kind: Any) -> bool:
    return bool(kind.dtype.startswith("i"))


def _open_quotient(node: TargetNode, a: Any, b: Any) -> Any:
    import z3

    kind = node.type
    if not _signed(kind):
        return b == 0
    lowest = z3.BitVecVal(1 << (a.size() - 1), a.size())
    return z3.Or(b == 0, z3.And(a == lowest, b == -1))


def _quotient(node: TargetNode, a: Any, b: Any) -> Any:
    import z3

    return a / b if _signed(node.type) else z3.UDiv(a, b)


def _relu(node: TargetNode, a: Any) -> Any:
    import z3

    return z3.If(a < 0, z3.BitVecVal(0, a.size()), a) if _signed(node.type) else a


def _abs(node: TargetNode, a: Any) -> Any:
    import z3

    return z3.If(a < 0, -a, a) if _signed(node.type) else a


def _cast(node: TargetNode, a: Any) -> Any:
    import z3

    (source,), target = node.operand_types, node.type
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        raise KeyError(node.op)
    if target.dtype == "bool":
        return a if source.dtype == "bool" else a != 0
    bits = _bits(target)
    if source.dtype == "bool":
        return z3.If(a, z3.BitVecVal(1, bits), z3.BitVecVal(0, bits))
    if bits <= a.size():
        return z3.Extract(bits - 1, 0, a)
    extra_bits = bits - a.size()
    return z3.SignExt(extra_bits, a) if _signed(source) else z3.ZeroExt(extra_bits, a)


def _fill(node: TargetNode) -> Any:
    import z3

    kind = _kind(node)
    if kind.dtype == "bool":
        return z3.BoolVal(_number(node) != 0)
    return z3.BitVecVal(_number(node), _bits(kind))


_TERMS: dict[str, Callable[..., Any]] = {
    "add": lambda node, a, b: a + b,
    "sub": lambda node, a, b: a - b,
    "mul": lambda node, a, b: a * b,
    "div": _quotient,
    "neg": lambda node, a: -a,
    "abs": _abs,
    "relu": _relu,
    "cast": _cast,
    "identity": lambda node, a: a,
    "dropout": lambda node, a: a,
    "fill": _fill,
}
