"""Whether a law holds on a machine: in the element types that its operands have, on given numbers.

Integers have to agree wherever the left side is defined: no division by 0, none whose quotient the type
lacks, no float turned into an integer that it does not fit. Floats have to agree up to rounding, that of
their operands included, and where one side has no finite value, the other must have none: a law that is
about finite numbers may make NaN of an infinity, no number of either, and neither of a number. What no
operator rounds has to agree as it is. Zeros are equal whatever their sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import numpy as np

from relational_tensat.rules.instance import Instance, TargetNode
from relational_tensat.rules.soundness.judging import Element, Outcome, evaluate_both
from relational_tensat.rules.soundness.sides import Compute, Sides, evaluate, has_floats, parts
from relational_tensat.tensor.field import Undefined
from relational_tensat.tensor.floats import FLOAT_FORMATS, integer_range, rounded
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.types import TensorType, ValueType, tensors_of

#: Roundings to the nearest that a law may be off by, of the largest number on the way.
_ROUNDINGS = 16
#: How many neighbours of the operands show how well the left side is conditioned.
_NEIGHBOURS = 8
#: What is not computed in a wider type.
_STAYS = ("cast", "fill")


def on_machine(node: TargetNode, operands: Sequence[Any]) -> Any:
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


def on_wide_machine(node: TargetNode, operands: Sequence[Any]) -> Any:
    """Compute a node as ``on_machine``, float16 in float32; what is stored or converted stays as it is.

    Raises:
        Undefined: as ``on_machine``.
    """
    if node.op in _STAYS:
        return on_machine(node, operands)
    kinds = tuple(map(_wide, node.operand_types))
    return on_machine(node._replace(operand_types=kinds, type=_wide(node.type)), operands)


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
    """What operands are, and so how closely, and where, the two sides have to agree."""

    MODERATE = "moderate"
    #: Elements are compared one by one, relative to their own size, where the left side is finite.
    EXTREME = "extreme"
    #: One has rows that are masked: what is lost beside the lowest number counts no more.
    MASKED = "masked"


def compared(
    sides: Sides, operands: Sequence[Any], what: Operands = Operands.MODERATE
) -> tuple[Outcome, Element | None]:
    """Compare the two sides for given operands.

    Returns:
        What came out, and the first element that differs.
    """
    everywhere = what is Operands.EXTREME
    compute = on_wide_machine if sides.widened else on_machine
    with np.errstate(all="ignore"):
        results = evaluate_both(sides, operands, compute)
        if isinstance(results, Outcome):
            return results, None
        left, right = results
        n_roots = len(sides.left.roots)
        outcome, element = _compared(sides, left, right, [None] * n_roots, everywhere)
        if outcome is Outcome.HOLDS or not rounds(sides):
            return outcome, element
        scale = 0.0
        if what is Operands.MODERATE:
            scale = max(_largest(left), _largest(right))
        elif what is Operands.MASKED:
            scale = _largest([left[root] for root in sides.left.roots])
        outcome, element = _compared(sides, left, right, [scale] * n_roots, everywhere)
        if outcome is Outcome.FAILS and not everywhere:
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

    What cancels and is scaled up again (a norm of what is nearly equal) has no more digits than that.
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
) -> tuple[Outcome, Element | None]:
    """Compare two results; ``scales`` as in ``_same``, one for each root."""
    for source, (a, b) in enumerate(zip(sides.left.roots, sides.right.roots, strict=True)):
        kinds = tensors_of(sides.types(sides.left)[source])
        for part, (left_part, right_part, kind) in enumerate(
            zip(parts(left[a]), parts(right[b]), kinds, strict=True)
        ):
            if np.shape(left_part) != np.shape(right_part):
                return Outcome.FAILS, None
            wrong = np.argwhere(~_same(left_part, right_part, kind, scales[source], everywhere))
            if len(wrong):
                at = tuple(wrong[0].tolist())
                index = part if isinstance(left[a], tuple) else None
                return Outcome.FAILS, Element(
                    source, index, at, left_part[at].item(), right_part[at].item()
                )
    return Outcome.HOLDS, None


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
    """Return how large sums would be without cancellation: what their rounding relates to."""
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
