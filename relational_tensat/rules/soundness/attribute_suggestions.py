"""What attributes are likely to fit, given operands and attributes that are drawn already."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from relational_tensat.rules.soundness.hints import Hints, Shape
from relational_tensat.rules.soundness.suggestions import reshaped, shape_of, whole_numbers
from relational_tensat.tensor.operators import Attr
from relational_tensat.tensor.types import AttrValue, TensorType, ValueType


def sample_attribute(
    op: str,
    attr: Attr,
    wanted: ValueType | None,
    operands: Sequence[ValueType],
    drawn: Mapping[str, AttrValue],
    hints: Hints,
) -> AttrValue:
    """Draw a value that is likely to be valid.

    Args:
        wanted: the type that the result should have, if known.
        drawn: the attributes that are known already.
    """
    choices = hints.choices
    if attr.choices:
        return choices.choice([attr.choices[0], *attr.choices])
    shape = shape_of(operands[0]) if operands else None
    rank = len(shape) if shape is not None else 0
    match (op, attr.name):
        case (_, "stride" | "kernel" | "dilation" | "pad" | "pads"):
            return _window_attribute(attr.name, rank, hints)
        case ("slice", _):
            return _slice_attribute(attr.name, shape or (), drawn, hints)
        case ("concat", "axis"):
            return _concat_axis(operands, hints)
        case (_, "axis"):
            return choices.below(max(1, rank))
        case (_, "sizes"):
            axis = drawn["axis"]
            return _pieces(shape[axis] if shape and isinstance(axis, int) else 1, hints)
        case (_, "index"):
            return choices.below(len(operands[0]) if isinstance(operands[0], tuple) else 1)
        case (_, "perm"):
            return hints.permutation(rank)
        case (_, "axes"):
            count = choices.between(min(1, rank), rank)
            return tuple(choices.sample(range(rank), count))
        case (_, "shape"):
            return _shape_attribute(op, shape, shape_of(wanted), hints)
        case ("fill", "dtype") if isinstance(wanted, TensorType) and choices.often():
            return wanted.dtype
        case (_, "dtype"):
            return hints.dtype if choices.often() else "float32"
        case ("fill", "value") if isinstance(wanted, TensorType) and not wanted.is_float:
            return float(choices.choice([1, 0, -1, 2]))
        case (_, "epsilon"):
            return choices.choice([0.125, 1e-5])
        case (_, "value" | "min" | "max"):
            return choices.choice([1.0, 0.0, 2.0, -1.5, -0.5, 0.25])
        case (_, "count" | "groups"):
            return choices.choice([1, 2, 2, 3, 4])
    return {"bool": choices.below(2) == 1, "int": 1, "float": 1.0}.get(attr.kind, 0)


def _window_attribute(name: str, rank: int, hints: Hints) -> AttrValue:
    """An attribute of a convolution or a pool, or the pads of ``pad``; often a plain one."""
    choices, spatial = hints.choices, max(0, rank - 2)
    plain = choices.below(4) == 0
    match name:
        case "stride" | "kernel":
            if plain:
                return (1,) * spatial
            common = hints.stride if name == "stride" else hints.kernel
            return tuple(common[:spatial]) if choices.often() else _numbers(spatial, 1, 3, hints)
        case "dilation":
            return () if plain else choices.choice([(), (), (2,) * spatial])
        case "pads":
            if plain:
                return (0,) * (2 * rank)
            padded = [i % rank >= 2 or choices.below(4) == 3 for i in range(2 * rank)]
            return tuple(choices.below(3) if each else 0 for each in padded)
    match choices.weighted(2, 1, 1):
        case 0:
            return "same"
        case 1:
            return "valid"
    return _numbers(2 * spatial, 0, 2, hints)


def _numbers(count: int, low: int, high: int, hints: Hints) -> Shape:
    return tuple(hints.choices.between(low, high) for _ in range(count))


def _shape_attribute(op: str, shape: Shape | None, target: Shape | None, hints: Hints) -> AttrValue:
    if op == "fill":
        return hints.broadcast(target).shape if target else hints.tensor_type().shape
    if target is not None and math.prod(target) == math.prod(shape or ()):
        return target
    return reshaped(shape or (), hints)


def _concat_axis(operands: Sequence[ValueType], hints: Hints) -> int:
    """An axis on which the operands differ, or any."""
    known = [each for each in map(shape_of, operands) if each]
    rank = min(map(len, known), default=1)
    differing = [i for i in range(rank) if len({each[i] for each in known}) > 1]
    axis = hints.choices.choice(differing or list(range(max(1, rank))))
    if known:
        sizes = tuple(each[axis] for each in known)
        hints.cuts[sum(sizes)] = sizes
    return axis


def _pieces(size: int, hints: Hints) -> Shape:
    """Sizes of pieces: those of what was joined before, or any."""
    if size in hints.cuts and hints.choices.often():
        return hints.cuts[size]
    parts: list[int] = []
    while size and len(parts) < 3:
        parts.append(hints.choices.between(1, size))
        size -= parts[-1]
    return (*parts, size) if size else tuple(parts)


def _slice_attribute(
    name: str, shape: Shape, drawn: Mapping[str, AttrValue], hints: Hints
) -> AttrValue:
    choices = hints.choices
    axes = drawn.get("axes")
    if name == "axes" or not isinstance(axes, tuple):
        long = [i for i, size in enumerate(shape) if size > 1]
        return tuple(choices.sample(long, min(len(long), choices.choice((1, 1, 0, 2)))))
    starts = drawn.get("starts")
    if name == "starts" or not isinstance(starts, tuple):
        return tuple(choices.below(_at(shape, axis)) for axis in whole_numbers(axes))
    if name == "ends":
        pairs = zip(whole_numbers(axes), whole_numbers(starts), strict=False)
        return tuple(choices.between(s + 1, max(s + 1, _at(shape, a))) for a, s in pairs)
    return tuple(choices.choice((1, 1, 2)) for _ in axes)


def _at(shape: Shape, axis: int) -> int:
    return shape[axis] if axis < len(shape) else 1
