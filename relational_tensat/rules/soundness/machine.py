"""Whether a law holds on a machine: in the element types that its operands have, on given numbers.

Integers have to agree wherever the left side is defined: no division by 0, no quotient outside the type, no
float turned into an integer that it does not fit. Floats have to agree up to rounding, that of their
operands included. If one side has no finite value, the other must have none: a law that is about finite
numbers may make NaN of an infinity, no number of either, and neither of a number. Results that no operator
rounds have to agree as they are. Zeros are equal whatever their sign.

``Operands`` are ordinary numbers, the ends of moderate sizes, or extremes.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from relational_tensat.rules.instance import Instance, TargetNode
from relational_tensat.rules.soundness.judgement import Element, LawOutcome, evaluate_both
from relational_tensat.rules.soundness.sides import Compute, Sides, evaluate, has_floats, parts
from relational_tensat.rules.soundness.tensor_values import Indices
from relational_tensat.tensor import Graph, Node
from relational_tensat.tensor.field import Undefined
from relational_tensat.tensor.floats import FLOAT_FORMATS, integer_range, rounded
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.mask_inputs import find_masks
from relational_tensat.tensor.operators import Use, get_operator
from relational_tensat.tensor.types import Array, TensorType, ValueType, numpy_dtype, tensors_of

#: Numbers at which functions and formats change: beside those of the type itself.
_SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-3, -1e-5, 17.0, -17.0, 88.0, -88.0, 104.0, -104.0,
    300.0, 1e4, -1e8, 12582912.0, 1e30, -1e-30,
)  # fmt: skip
#: Round numbers, and how many times they are taken.
_ROUND = (1.0, 0.5, 0.25, 0.1, 0.05, 0.7)
_ROUND_COUNTS = (1, 10, 200)
#: Lengths in bits that drawn integers go up to: those that some type holds, and one more.
_LENGTHS = (7, 8, 11, 12, 15, 16, 24, 25, 31, 32, 53, 54, 63, 64)


class MachineValues:
    """Draws the tensors of one configuration, in their own element types.

    Args:
        types: of the rule's variables.
        left: the sources, which say what is an index.
    """

    def __init__(self, types: tuple[TensorType, ...], left: Instance, seed: int) -> None:
        self._types = types
        self._left = left
        self._rng = np.random.default_rng([seed, zlib.crc32(repr(types).encode())])
        self._indices = Indices(types, left, self._rng)

    def moderate(self) -> Iterator[list[Array]]:
        """Yield operands of which each is moderate: ordinary, and one at a time at an end of it."""
        for scale in ("ordinary", "positive", "negative", "whole", "small"):
            yield self.drawn(scale)
        if not any(
            kind.dtype == "float16" for kind in self._types
        ):  # whose products would overflow
            yield self.drawn("wide")
        for index, kind in enumerate(self._types):
            scale = "large" if kind.is_float else "ends"
            yield [
                self._drawn(i, operand_kind, scale if i == index else "ordinary")
                for i, operand_kind in enumerate(self._types)
            ]

    def masked(self) -> Iterator[list[Array]]:
        """Yield operands of which one at a time is a mask of scores, with rows of all sorts."""
        if not any(Use.SCORE in get_operator(node.op).uses for node in self._left.nodes):
            return
        for name, mask in find_masks(_graph(self._types, self._left)).items():
            index = int(name)
            if mask.infinity is None:
                continue
            ordinary = [self._drawn(i, kind, "ordinary") for i, kind in enumerate(self._types)]
            for rows in mask.draws(ordinary[index]):
                yield [rows if i == index else array for i, array in enumerate(ordinary)]

    def integers(self) -> Iterator[list[Array]]:
        """Yield operands whose integers are of every length in bits, up to one that grows."""
        kinds = [
            k for i, k in enumerate(self._types) if not k.is_float and i not in self._indices.sizes
        ]
        longest = max(
            (numpy_dtype(k.dtype).itemsize * 8 for k in kinds if k.dtype != "bool"), default=0
        )
        for bits in (length for length in _LENGTHS if length <= longest):
            yield self.drawn("ordinary", bits)

    def extreme(self) -> list[Array]:
        """Draw operands from the ends of their types: NaN and infinities among the floats."""
        return self.drawn("ends")

    def drawn(self, scale: str, bits: int = 0) -> list[Array]:
        """Draw operands of one scale: "ordinary", "wide", "ends", or multiples of "round" numbers, which
        lie between two whole numbers more often than others."""
        return self._indices.fitting(
            lambda: [self._drawn(i, kind, scale, bits) for i, kind in enumerate(self._types)]
        )

    def _drawn(self, index: int, kind: TensorType, scale: str, bits: int = 0) -> Array:
        if kind.dtype == "bool":
            return self._rng.integers(0, 2, size=kind.shape).astype(bool)
        if kind.is_float and index in self._indices.sizes:
            return rounded(self._indices.numbers(index).astype(np.float64), kind.dtype)
        if kind.is_float:
            return rounded(self._float(kind, scale), kind.dtype)
        numpy_type = numpy_dtype(kind.dtype)
        if index in self._indices.sizes:
            return self._indices.numbers(index).astype(numpy_type)
        return self._of_length(kind, bits) if bits else self._integer(kind, scale)

    def _of_length(self, kind: TensorType, bits: int) -> Array:
        """Draw integers of every length in bits up to one, none more often than another."""
        low, high = _integer_range(kind.dtype)
        lengths = self._rng.integers(
            1, min(bits, high.bit_length()), size=kind.shape, endpoint=True
        )
        any_ = self._rng.integers(0, (1 << 64) - 1, size=kind.shape, dtype=np.uint64, endpoint=True)
        sizes = (any_ >> (64 - lengths).astype(np.uint64)).astype(numpy_dtype(kind.dtype))
        signs = self._chosen(_SIGNS, kind).astype(sizes.dtype) if low < 0 else 1
        return np.asarray(sizes * signs, sizes.dtype)

    def _float(self, kind: TensorType, scale: str) -> Array:
        rng, format_ = self._rng, FLOAT_FORMATS[kind.dtype]
        signs = self._chosen(_SIGNS, kind)
        match scale:
            case "whole":
                return np.asarray(rng.integers(-3, 4, size=kind.shape), np.float64)
            case "ends":
                exponents = rng.uniform(format_.lowest, format_.highest, size=kind.shape)
                any_ = signs * np.exp2(exponents)
                is_any = rng.integers(0, 3, size=kind.shape) == 0
                return np.asarray(
                    np.where(is_any, any_, self._chosen(_float_ends(kind.dtype), kind))
                )
            case "large":
                return np.asarray(signs * format_.moderate[1] * rng.uniform(0, 1, size=kind.shape))
            case "wide":
                exponents = rng.uniform(-2, np.log2(format_.moderate[1]), size=kind.shape)
                return np.asarray(signs * 2.0**exponents)
            case "small":
                return np.asarray(signs * format_.moderate[0] * rng.uniform(1, 2, size=kind.shape))
            case "round":
                numbers = rng.integers(1, rng.choice(_ROUND_COUNTS), size=kind.shape, endpoint=True)
                return np.asarray(
                    (signs if rng.integers(0, 2) else 1.0) * numbers * rng.choice(_ROUND)
                )
            case "positive" | "negative":
                sizes = 2.0 ** rng.uniform(-2, 2, size=kind.shape)
                return np.asarray(-sizes if scale == "negative" else sizes)
        return np.asarray(signs * 2.0 ** rng.uniform(-2, 2, size=kind.shape))

    def _integer(self, kind: TensorType, scale: str) -> Array:
        """Draw from the whole range; 0 is left out where other operands may be divided by these."""
        rng, numpy_type = self._rng, numpy_dtype(kind.dtype)
        low, high = _integer_range(kind.dtype)
        signed = low < 0
        if scale == "whole":
            return np.asarray(
                rng.integers(-3 if signed else 0, 4, size=kind.shape).astype(numpy_type)
            )
        if scale in ("ordinary", "positive", "negative", "small", "wide", "round"):
            sizes: Any = rng.integers(1, 6, size=kind.shape).astype(numpy_type)
            signs = self._chosen(_SIGNS, kind).astype(numpy_type) if signed else 1
            return np.asarray(sizes * signs, numpy_type)
        picked = self._chosen(_integer_ends(kind.dtype), kind)
        any_ = rng.integers(low, high, size=kind.shape, dtype=numpy_type, endpoint=True)
        return np.asarray(np.where(rng.integers(0, 2, size=kind.shape) == 1, picked, any_))

    def _chosen(self, numbers: Array, kind: TensorType) -> Any:
        """Return one of some numbers per element."""
        return np.asarray(numbers[self._rng.integers(0, len(numbers), size=kind.shape)])


def _graph(types: tuple[TensorType, ...], left: Instance) -> Graph:
    """Return the sources as a graph, whose values have their indices as names; nothing is returned."""
    names = [str(index) for index in range(len(types) + len(left.nodes))]
    nodes = tuple(
        Node(node.op, tuple(names[child] for child in node.children), (name,), dict(node.attrs))
        for node, name in zip(left.nodes, names[len(types) :], strict=True)
    )
    kinds = [*types, *(node.type for node in left.nodes)]
    inputs = dict(zip(names, types, strict=False))
    return Graph("sources", inputs, {}, nodes, (), dict(zip(names, kinds, strict=True)))


_SIGNS = np.array((-1.0, 1.0))
_integer_range = cache(integer_range)


@cache
def _float_ends(dtype: str) -> Array:
    """Return numbers at which functions and a float type change."""
    kind = FLOAT_FORMATS[dtype]
    ends = (
        kind.smallest, kind.smallest_normal, kind.largest, -kind.largest,
        1 + kind.epsilon, 1 / kind.epsilon, np.inf, -np.inf, np.nan,
    )  # fmt: skip
    return np.array((*_SPECIAL, *ends))


@cache
def _integer_ends(dtype: str) -> Array:
    """Return the ends of an integer type, and numbers from which others overflow."""
    numpy_type = numpy_dtype(dtype)
    low, high = integer_range(dtype)
    half = 1 << (numpy_type.itemsize * 4)
    below_zero = (-1, low + 1) if low < 0 else ()
    ends = (low, high, high - 1, high // 2 + 1, half % high, 1, 3, *below_zero)
    return np.array(ends, numpy_type)


#: Roundings to the nearest that a law may be off by, of the largest number on the way.
_ROUNDINGS = 16
#: How many neighbours of the operands show how well the left side is conditioned.
_NEIGHBOURS = 8
#: Operators that are not computed in a wider type.
_STAYS = ("cast", "fill")


def _on_machine(node: TargetNode, operands: Sequence[Any]) -> Any:
    """Compute a node in machine arithmetic.

    Raises:
        Undefined: hardware, or ONNX, leaves open what comes out.
    """
    if not get_operator(node.op).is_defined(operands):
        raise Undefined
    if node.op == "div" and not has_floats(node.type):
        _check_quotient(*operands)
    if node.op == "cast" and has_floats(node.operand_types[0]) and not has_floats(node.type):
        _check_fits(operands[0], node.type)
    return computed(node.op, operands, node.operand_types, dict(node.attrs), node.type)


def _on_wide_machine(node: TargetNode, operands: Sequence[Any]) -> Any:
    """Compute a node as ``_on_machine``, float16 in float32; stored and converted values stay as they are.

    Raises:
        Undefined: as ``_on_machine``.
    """
    if node.op in _STAYS:
        return _on_machine(node, operands)
    kinds = tuple(map(_wide, node.operand_types))
    return _on_machine(node._replace(operand_types=kinds, type=_wide(node.type)), operands)


def _wide(kind: ValueType) -> ValueType:
    if isinstance(kind, TensorType):
        return replace(kind, dtype="float32") if kind.dtype == "float16" else kind
    return tuple(replace(p, dtype="float32") if p.dtype == "float16" else p for p in kind)


def _check_quotient(a: Any, b: Any) -> None:
    lowest = np.iinfo(a.dtype).min if a.dtype.kind == "i" else None
    if not np.all(b) or (lowest is not None and np.any((a == lowest) & (b == -1))):
        raise Undefined


def _check_fits(values: Any, kind: Any) -> None:
    if not isinstance(kind, TensorType) or kind.dtype == "bool":
        return
    low, high = integer_range(kind.dtype)
    cut = np.trunc(values)
    if not np.all((cut >= float(low)) & (cut <= float(high)) & (np.abs(cut) < 2.0**62)):
        raise Undefined


class Operands(Enum):
    """The kinds of operands; they decide how closely, and where, the two sides have to agree."""

    MODERATE = "moderate"
    #: Elements are compared one by one, relative to their own size, where the left side is finite.
    EXTREME = "extreme"
    #: One has rows that are masked: digits lost beside the lowest number count no more.
    MASKED = "masked"


def compared(
    sides: Sides, operands: Sequence[Any], what: Operands = Operands.MODERATE
) -> tuple[LawOutcome, Element | None]:
    """Compare the two sides for given operands.

    Returns:
        The result, and the first element that differs.
    """
    everywhere = what is Operands.EXTREME
    compute = _on_wide_machine if sides.widened else _on_machine
    with np.errstate(all="ignore"):
        results = evaluate_both(sides, operands, compute)
        if isinstance(results, LawOutcome):
            return results, None
        left, right = results
        n_roots = len(sides.left.roots)
        outcome, element = _compared(sides, left, right, [None] * n_roots, everywhere)
        if outcome is LawOutcome.HOLDS or not rounds(sides):
            return outcome, element
        scale = 0.0
        if what is Operands.MODERATE:
            scale = max(_largest(left), _largest(right))
        elif what is Operands.MASKED:
            scale = _largest([left[root] for root in sides.left.roots])
        outcome, element = _compared(sides, left, right, [scale] * n_roots, everywhere)
        if outcome is LawOutcome.FAILS and not everywhere:
            if what is Operands.MODERATE:
                terms = (_largest_term(sides.left, left), _largest_term(sides.right, right))
                scale = max(scale, *terms)
            scales = [scale + shift for shift in _shifts(sides, operands, left, compute)]
            outcome, element = _compared(sides, left, right, scales, everywhere)
        return outcome, element


def _shifts(
    sides: Sides, operands: Sequence[Any], left: Sequence[Any], compute: Compute
) -> list[Any]:
    """Return, per root, how far the left side moves, in epsilons, where operands are the next numbers.

    A difference that is scaled up again (a norm of nearly equal numbers) has no more digits than that.
    """
    random = np.random.default_rng(0)
    shifts: list[Any] = [0.0] * len(sides.left.roots)
    for _ in range(_NEIGHBOURS):
        others = [
            _neighbour(operand, kind, random)
            for operand, kind in zip(operands, sides.var_types, strict=True)
        ]
        try:
            moved = evaluate(sides.left, others, compute)
        except Undefined:
            continue
        for index, root in enumerate(sides.left.roots):
            kind = sides.types(sides.left)[index]
            if isinstance(kind, TensorType) and kind.is_float:
                shift = np.nan_to_num(np.abs(moved[root] - left[root]), posinf=0.0)
                shifts[index] = np.maximum(shifts[index], shift / FLOAT_FORMATS[kind.dtype].epsilon)
    return shifts


def _neighbour(operand: Any, kind: TensorType, random: np.random.Generator) -> Any:
    """Return floats of which each is the next of its type, above or below; other numbers as they are.

    So are those of masks: the lowest, and infinities.
    """
    if not kind.is_float:
        return operand
    format_ = FLOAT_FORMATS[kind.dtype]
    signs = random.choice((-1.0, 1.0), kind.shape)
    moved = rounded(operand * (1.0 + signs * format_.epsilon), kind.dtype)
    return np.where(format_.is_mask(operand), operand, moved)


def _compared(
    sides: Sides, left: Sequence[Any], right: Sequence[Any], scales: Sequence[Any], everywhere: bool
) -> tuple[LawOutcome, Element | None]:
    """Compare two results; ``scales`` as in ``_same``, one for each root."""
    for source, (a, b) in enumerate(zip(sides.left.roots, sides.right.roots, strict=True)):
        kinds = tensors_of(sides.types(sides.left)[source])
        for part, (left_part, right_part, kind) in enumerate(
            zip(parts(left[a]), parts(right[b]), kinds, strict=True)
        ):
            if np.shape(left_part) != np.shape(right_part):
                return LawOutcome.FAILS, None
            wrong = np.argwhere(~_same(left_part, right_part, kind, scales[source], everywhere))
            if len(wrong):
                at = tuple(wrong[0].tolist())
                index = part if isinstance(left[a], tuple) else None
                return LawOutcome.FAILS, Element(
                    source, index, at, left_part[at].item(), right_part[at].item()
                )
    return LawOutcome.HOLDS, None


def _same(left: Any, right: Any, kind: TensorType, scale: Any, everywhere: bool) -> Any:
    """Return where two results agree.

    Args:
        scale: the size that rounding relates to, one or one per element, beside that of the elements;
            None for no rounding.
    """
    same = left == right
    if not kind.is_float:
        return same
    same |= np.isnan(left) & np.isnan(right)
    if everywhere:
        same |= ~np.isfinite(left)
    if scale is None:
        return same
    same |= (np.isnan(left) & np.isinf(right)) | (np.isinf(left) & np.isnan(right))
    format_ = FLOAT_FORMATS[kind.dtype]
    sizes = np.maximum(np.abs(left), np.abs(right)) if everywhere else scale
    tolerance = _ROUNDINGS * (0.5 * format_.epsilon * sizes + format_.smallest_normal * everywhere)
    tolerance = np.maximum(tolerance, _ROUNDINGS * format_.smallest)
    close = np.abs(left - right) <= np.where(np.isfinite(tolerance), tolerance, 0.0)
    return same | (np.isfinite(left) & np.isfinite(right) & close)


def rounds(sides: Sides) -> bool:
    """Whether some operator of a side rounds floats, its result or on the way to integers."""
    nodes = [(get_operator(n.op), n.type) for n in (*sides.left.nodes, *sides.right.nodes)]
    return any(op.rounds or (has_floats(kind) and not op.is_exact) for op, kind in nodes)


def _largest(results: Sequence[Any]) -> float:
    """Return the largest finite number among float results, the operands' included."""
    return max((_size(part) for result in results for part in parts(result)), default=0.0)


def _largest_term(side: Instance, results: Sequence[Any]) -> float:
    """Return how large sums would be without cancellation: their rounding relates to that size."""
    largest = 0.0
    for node in side.nodes:
        operator = get_operator(node.op)
        if operator.sums and has_floats(node.type):
            sizes = [np.abs(results[child]) for child in node.children]
            attrs = {key: "none" if key == "act" else value for key, value in node.attrs}
            largest = max(largest, _size(operator.evaluate_typed(sizes, node.operand_types, attrs)))
    return largest


def _size(array: Any) -> float:
    if array.dtype.kind != "f":
        return 0.0
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max(initial=0.0))
