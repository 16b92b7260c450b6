"""What operands are likely to fit: guesses that make valid instances common.

Nothing here has to be right, only often right; the operators' own shape rules decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from relational_tensat.rules.soundness.hints import Hints, Shape
from relational_tensat.tensor.types import AttrValue, TensorType, ValueType

Kinds = Sequence[ValueType | None]


def shape_of(kind: ValueType | None) -> Shape | None:
    """Return the shape of a tensor; None of a tuple, or of what is not known."""
    return kind.shape if isinstance(kind, TensorType) else None


def whole_numbers(value: AttrValue) -> Shape:
    """Return the whole numbers of an attribute's value."""
    return tuple(e for e in value if isinstance(e, int)) if isinstance(value, tuple) else ()


def suggest(
    op: str,
    index: int,
    wanted: ValueType | None,
    kinds: Kinds,
    attrs: Mapping[str, AttrValue],
    hints: Hints,
) -> TensorType | None:
    """Suggest a type for operand ``index``; None for no idea.

    Args:
        wanted: the type that the result should have, if known.
        kinds: the operands' types as far as they are known.
        attrs: the attributes as far as they are known.
    """
    target = shape_of(wanted)
    known = [shape_of(kind) for kind in kinds]
    match op:
        case "matmul":
            return _matmul_operand(index, target, known, hints)
        case "conv":
            return _conv_operand(index, target, known, hints)
        case "max_pool" | "avg_pool":
            return hints.image_type(*(target[:2] if target and len(target) > 2 else ()))
        case "batch_norm":
            return _norm_operand(index, target, known, hints)
        case "layer_norm" | "rms_norm":
            return _last_axes_operand(index, target, known, hints)
        case "concat":
            return _concat_operand(index, target, known, attrs, hints)
        case "add" | "sub" | "mul" | "div" | "pow":
            return _pair_operand(index, target, known, hints)
        case "transpose":
            return _transposed(target, attrs, hints)
        case "reshape":
            return None if target is None else hints.type(reshaped(target, hints))
        case "slice":
            return None if target is None else hints.type([s + hints.size() - 1 for s in target])
        case "gather":
            return _gather_operand(index, hints)
        case "split" | "part":
            return None
        case _ if op.startswith("reduce_"):
            return _reduced_operand(target, attrs, hints)
        case "pad":
            return _padded_operand(target, attrs, hints)
    return wanted if isinstance(wanted, TensorType) else None


def _matmul_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType:
    a, b = known[0], known[1]
    base = target or a or b or ()
    batch = base[:-2] if len(base) > 2 else (hints.size(),) * max(0, hints.rank - 2)
    if not hints.choices.often():
        batch = hints.broadcast(batch).shape
    rows = target[-2] if target and len(target) > 1 else hints.size()
    columns = target[-1] if target else hints.size()
    if index == 0:
        inner = b[-2] if b and len(b) > 1 else hints.size()
        return hints.type([*batch, rows, inner])
    if index == 1:
        inner = a[-1] if a else hints.size()
        return hints.type([*batch, inner, columns])
    if a and b and len(a) > 1 and hints.choices.often():
        columns = b[-1]
        return hints.type([[columns], [1, columns], [a[-2], columns]][hints.choices.below(3)])
    return hints.broadcast((*batch, rows, columns))


def _conv_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType:
    x, w = known[0], known[1]
    filters = target[1] if target and len(target) > 2 else None
    if index == 0:
        batch = target[0] if target else None
        if w is None or len(w) < 3:
            return hints.image_type(batch)
        groups = hints.choices.choice([g for g in (1, 1, 1, 2, 3, w[0]) if w[0] % g == 0])
        hints.spatial = len(w) - 2
        return hints.image_type(batch, w[1] * groups)
    if index == 1:
        if x is None or len(x) < 3:
            return hints.tensor_type(hints.spatial + 2)
        choices = [g for g in (1, 1, 1, 2, 2, 3, x[1]) if x[1] % g == 0]
        if filters:
            choices = [g for g in choices if filters % g == 0]
        groups = hints.choices.choice(choices)
        kernel = [
            k if hints.choices.often() else hints.choices.choice([1, 2, 3]) for k in hints.kernel
        ]
        if hints.choices.below(5) == 4:  # one tap: many laws are about such kernels alone
            kernel = [1] * len(kernel)
        outputs = filters or groups * hints.choices.choice([1, 1, 2, 3])
        return hints.type([outputs, x[1] // groups, *kernel[: len(x) - 2]])
    return hints.type([w[0]] if w else [hints.size()])


def _norm_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType | None:
    if index == 0:
        vectors = [each for each in known[1:] if each]
        if vectors:
            return hints.image_type(None, vectors[0][0])
        return hints.type(target) if target and len(target) > 1 else None
    return hints.type(known[0][1:2]) if known[0] else None


def _last_axes_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType | None:
    """A tensor to be normalized over its last axes, or a scale or bias of the shape of these."""
    vectors = [each for each in known[1:] if each is not None]
    if index > 0 and (vectors or known[0]):
        x = known[0] or ()
        return hints.type(vectors[0] if vectors else x[hints.choices.below(len(x)) :])
    if target is None and vectors:
        return hints.type((hints.size(), *vectors[0]))
    return hints.type(target) if target else None


def _concat_operand(
    index: int,
    target: Shape | None,
    known: list[Shape | None],
    attrs: Mapping[str, AttrValue],
    hints: Hints,
) -> TensorType | None:
    siblings = [each for each in known if each]
    given = attrs.get("axis")
    if target and len(known) > 1:
        axis = given if isinstance(given, int) else _cut_axis(target, siblings, hints)
        if axis < len(target) and all(len(each) == len(target) for each in siblings):
            left = target[axis] - sum(each[axis] for each in siblings)
            last = len(siblings) == len(known) - 1
            size = left if last else hints.choices.between(1, max(1, left - 1))
            return hints.type([*target[:axis], max(1, size), *target[axis + 1 :]])
    if siblings:
        shape = list(hints.choices.choice(siblings))
        axis = given if isinstance(given, int) else hints.choices.below(max(1, len(shape)))
        if axis < len(shape) and not hints.choices.often():
            shape[axis] = hints.size()
        return hints.type(shape)
    return None


def _cut_axis(target: Shape, siblings: list[Shape], hints: Hints) -> int:
    """The axis on which the first sibling is shorter than the whole, or a longer one."""
    for own, whole in zip(siblings[0] if siblings else (), range(len(target)), strict=False):
        if own < target[whole]:
            return whole
    long = [axis for axis, size in enumerate(target) if size > 1]
    return hints.choices.choice(long or [0])


def _pair_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType | None:
    other = known[1 - index]
    if target is not None:
        must_be_whole = other is not None and other != target
        return (
            hints.type(target)
            if must_be_whole or hints.choices.often()
            else hints.broadcast(target)
        )
    if other is not None:
        match hints.choices.weighted(6, 7, 3, 4):
            case 0:
                return hints.type(other)
            case 1:
                return hints.broadcast(other)
            case 2:
                return hints.type(other[-1:])
            case _:
                return hints.type(hints.grown(other))
    return None


def _gather_operand(index: int, hints: Hints) -> TensorType:
    if index == 0:
        return hints.tensor_type(max(1, hints.rank))
    return TensorType("int64", hints.tensor_type(hints.choices.below(3)).shape)


def _reduced_operand(
    target: Shape | None, attrs: Mapping[str, AttrValue], hints: Hints
) -> TensorType:
    """A tensor whose reduction may have the shape wanted."""
    axes = whole_numbers(attrs.get("axes", ()))
    if target is None:
        return hints.tensor_type(max(1, hints.rank, *(axis + 1 for axis in axes)))
    if attrs.get("keepdims") is True or (1 in target and hints.choices.often()):
        return hints.type([hints.size() if size == 1 else size for size in target])
    at = axes[0] if axes and axes[0] <= len(target) else hints.choices.between(0, len(target))
    return hints.type([*target[:at], hints.size(), *target[at:]])


def _padded_operand(
    target: Shape | None, attrs: Mapping[str, AttrValue], hints: Hints
) -> TensorType:
    """An image, or a tensor that is smaller than the shape wanted by the padding."""
    pads = whole_numbers(attrs.get("pads", ()))
    if target is None:
        return hints.tensor_type(len(pads) // 2) if pads else hints.image_type()
    if len(pads) == 2 * len(target):
        added = map(sum, zip(pads[: len(target)], pads[len(target) :], strict=True))
        return hints.type([max(1, size - more) for size, more in zip(target, added, strict=True)])
    return hints.type([max(1, size - hints.choices.below(3)) for size in target])


def _transposed(
    target: Shape | None, attrs: Mapping[str, AttrValue], hints: Hints
) -> TensorType | None:
    if target is None:
        perm = attrs.get("perm")
        return hints.tensor_type(len(perm)) if isinstance(perm, tuple) else None
    perm = attrs.get("perm", hints.permutation(len(target)))
    if not isinstance(perm, tuple) or sorted(perm) != list(range(len(target))):
        return hints.type(target)
    shape = [0] * len(target)
    for place, axis in enumerate(whole_numbers(perm)):
        shape[axis] = target[place]
    return hints.type(shape)


def reshaped(shape: Shape, hints: Hints) -> Shape:
    """Return another shape of as many elements, or the same one."""
    choices, size = hints.choices, math.prod(shape)
    match choices.weighted(6, 4, 4, 3, 3, 2, 3):
        case 1:
            return (size,)
        case 2 if len(shape) > 1:
            cut = choices.between(1, len(shape) - 1)
            return (*shape[: cut - 1], shape[cut - 1] * shape[cut], *shape[cut + 1 :])
        case 3:
            at = choices.between(0, len(shape))
            return (*shape[:at], 1, *shape[at:])
        case 4:
            factors = [f for f in (2, 3) if size % f == 0]
            return (factors[0], size // factors[0]) if factors else (1, *shape)
        case 5:
            return tuple(each for each in shape if each != 1)
        case 6:
            kept = choices.below(2)  # the last axis, mostly what a product sums over
            cut = len(shape) - kept
            return (*choices.shuffled(shape[:cut]), *shape[cut:])
    return shape
