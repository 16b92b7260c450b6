"""What operands and attributes are likely to fit: guesses that make valid instances common.

Nothing here has to be right, only often right; the operators' own shape rules decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

from relational_tensat.graph.ir import AttrValue
from relational_tensat.graph.types import TensorType, ValueType
from relational_tensat.ops import Attr

Kinds = Sequence[ValueType | None]
Shape = tuple[int, ...]


class Hints:
    """Choices that one instance keeps, so that sizes meet more often than by chance."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.dtype = random.choice(["float32"] * 6 + ["float64", "int32", "int64"])
        self.rank = random.choice([0, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5])
        self.sizes = [random.choice([1, 2, 3, 4, 6]) for _ in range(3)]
        self.image = [random.randint(1, 6) for _ in range(3)]
        self.spatial = random.choice([1, 2, 2, 2, 2, 3])
        self.kernel = [random.choice([1, 1, 2, 3, 3]) for _ in range(3)]
        self.stride = [random.choice([1, 1, 2, 3])] * 3
        self.perm: dict[int, Shape] = {}

    def size(self) -> int:
        """A dimension."""
        return self.random.choice(self.sizes)

    def type(self, shape: Sequence[int]) -> TensorType:
        """A tensor of the instance's element type."""
        return TensorType(self.dtype, tuple(shape))

    def tensor_type(self, rank: int | None = None) -> TensorType:
        """Any tensor."""
        return self.type([self.size() for _ in range(self.rank if rank is None else rank)])

    def image_type(self, batch: int | None = None, channels: int | None = None) -> TensorType:
        """An operand of a convolution or pool."""
        sizes = [s if self.often() else self.random.randint(1, 6) for s in self.image]
        head = [batch or self.size(), channels or self.size()]
        return self.type([*head, *sizes[: self.spatial]])

    def broadcast(self, shape: Shape) -> TensorType:
        """An operand that broadcasts into a shape: some sizes 1, some leading axes left out."""
        cut = self.random.choice([0, 0, 0, 1, 2, len(shape)])
        kind = self.random.random()
        if kind < 0.3 and shape:  # all axes but one
            dropped = self.random.randrange(len(shape))
            return self.type([1 if i == dropped else size for i, size in enumerate(shape)])
        if kind < 0.6:  # one axis only, as biases have
            keep = self.random.choice([1, len(shape) - 1])
            kept = [size if i == keep else 1 for i, size in enumerate(shape)]
        else:
            kept = [size if self.often() else 1 for size in shape]
        return self.type(kept[cut:])

    def permutation(self, rank: int) -> Shape:
        """An order of axes; the same one again, mostly."""
        if rank not in self.perm or self.random.random() < 0.2:
            order = list(range(rank))
            kind = self.random.random()
            if kind < 0.5 and rank > 1:
                order[-1], order[-2] = order[-2], order[-1]
            elif kind < 0.9:
                self.random.shuffle(order)
            self.perm[rank] = tuple(order)
        return self.perm[rank]

    def often(self) -> bool:
        """True three times out of four."""
        return self.random.random() < 0.75


def _shape(kind: ValueType | None) -> Shape | None:
    return kind.shape if isinstance(kind, TensorType) else None


def _ints(value: AttrValue) -> Shape:
    """The whole numbers of an attribute's value."""
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
    target = _shape(wanted)
    known = [_shape(kind) for kind in kinds]
    match op:
        case "matmul":
            return _matmul_operand(index, target, known, hints)
        case "conv":
            return _conv_operand(index, target, known, hints)
        case "max_pool" | "avg_pool":
            return hints.image_type(*(target[:2] if target and len(target) > 2 else ()))
        case "batch_norm":
            return _norm_operand(index, target, known, hints)
        case "concat":
            return _concat_operand(index, target, known, attrs, hints)
        case "add" | "sub" | "mul" | "div" | "pow":
            return _pair_operand(index, target, known, hints)
        case "transpose":
            return _transposed(target, attrs, hints)
        case "reshape":
            return None if target is None else hints.type(_reshaped(target, hints))
        case "slice":
            return None if target is None else hints.type([s + hints.size() - 1 for s in target])
        case "split" | "part":
            return None
        case _ if op.startswith("reduce_"):
            return hints.tensor_type(max(1, hints.rank))
        case "pad":
            return hints.image_type()
    return wanted if isinstance(wanted, TensorType) else None


def _matmul_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType:
    a, b = known[0], known[1]
    base = target or a or b or ()
    batch = base[:-2] if len(base) > 2 else (hints.size(),) * max(0, hints.rank - 2)
    if not hints.often():
        batch = hints.broadcast(batch).shape
    rows = target[-2] if target and len(target) > 1 else hints.size()
    columns = target[-1] if target else hints.size()
    if index == 0:
        inner = b[-2] if b and len(b) > 1 else hints.size()
        return hints.type([*batch, rows, inner])
    if index == 1:
        inner = a[-1] if a else hints.size()
        return hints.type([*batch, inner, columns])
    if a and b and len(a) > 1 and hints.often():
        columns = b[-1]
        return hints.type([[columns], [1, columns], [a[-2], columns]][hints.random.randrange(3)])
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
        groups = hints.random.choice([g for g in (1, 1, 1, 2, 3, w[0]) if w[0] % g == 0])
        hints.spatial = len(w) - 2
        return hints.image_type(batch, w[1] * groups)
    if index == 1:
        if x is None or len(x) < 3:
            return hints.tensor_type(hints.spatial + 2)
        choices = [g for g in (1, 1, 1, 2, 2, 3, x[1]) if x[1] % g == 0]
        if filters:
            choices = [g for g in choices if filters % g == 0]
        groups = hints.random.choice(choices)
        kernel = [k if hints.often() else hints.random.choice([1, 2, 3]) for k in hints.kernel]
        outputs = filters or groups * hints.random.choice([1, 1, 2, 3])
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
            size = left if last else hints.random.randint(1, max(1, left - 1))
            return hints.type([*target[:axis], max(1, size), *target[axis + 1 :]])
    if siblings:
        shape = list(hints.random.choice(siblings))
        axis = given if isinstance(given, int) else hints.random.randrange(max(1, len(shape)))
        if axis < len(shape) and not hints.often():
            shape[axis] = hints.size()
        return hints.type(shape)
    return None


def _cut_axis(target: Shape, siblings: list[Shape], hints: Hints) -> int:
    """The axis on which the first sibling is shorter than the whole, or a longer one."""
    for own, whole in zip(siblings[0] if siblings else (), range(len(target)), strict=False):
        if own < target[whole]:
            return whole
    long = [axis for axis, size in enumerate(target) if size > 1]
    return hints.random.choice(long or [0])


def _pair_operand(
    index: int, target: Shape | None, known: list[Shape | None], hints: Hints
) -> TensorType | None:
    other = known[1 - index]
    if target is not None:
        must_be_whole = other is not None and other != target
        return hints.type(target) if must_be_whole or hints.often() else hints.broadcast(target)
    if other is not None:
        choice = hints.random.random()
        if choice < 0.2:
            return hints.type(_grown(other, hints))
        if choice < 0.35:
            return hints.type(other[-1:])
        return hints.type(other) if choice < 0.65 else hints.broadcast(other)
    return None


def _grown(shape: Shape, hints: Hints) -> Shape:
    """A shape that another one broadcasts into."""
    grown = [hints.size() if size == 1 else size for size in shape]
    return (*(hints.size() for _ in range(max(0, hints.random.randint(-1, 2)))), *grown)


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
    for place, axis in enumerate(_ints(perm)):
        shape[axis] = target[place]
    return hints.type(shape)


def _reshaped(shape: Shape, hints: Hints) -> Shape:
    """The same number of elements in another shape, or the same one."""
    kind = hints.random.random()
    if kind < 0.3:
        return shape
    if kind < 0.5:
        return (math.prod(shape),)
    if kind < 0.7 and len(shape) > 1:
        cut = hints.random.randrange(1, len(shape))
        return (*shape[: cut - 1], shape[cut - 1] * shape[cut], *shape[cut + 1 :])
    if kind < 0.85:
        return (*shape, 1)
    factors = [f for f in (2, 3) if math.prod(shape) % f == 0]
    return (factors[0], math.prod(shape) // factors[0]) if factors else (1, *shape)


def sample_attribute(
    op: str,
    attr: Attr,
    wanted: ValueType | None,
    operands: Sequence[ValueType],
    drawn: Mapping[str, AttrValue],
    hints: Hints,
) -> AttrValue:
    """Draw a value that is likely to be valid, given operands and the attributes drawn before."""
    random = hints.random
    if attr.choices:
        return random.choice([*attr.choices, attr.choices[0]])
    shape = _shape(operands[0]) if operands else None
    target = _shape(wanted)
    rank = len(shape) if shape is not None else 0
    match (op, attr.name):
        case (_, "stride" | "kernel"):
            common = hints.stride if attr.name == "stride" else hints.kernel
            return tuple(c if hints.often() else random.choice([1, 2, 3]) for c in common)[
                : rank - 2
            ]
        case (_, "pad"):
            numbers = tuple(random.randint(0, 2) for _ in range(2 * (rank - 2)))
            named: list[AttrValue] = ["same", "same", "valid", numbers]
            return random.choice(named)
        case (_, "dilation"):
            return random.choice([(), (), (), (2,) * (rank - 2)])
        case ("concat", "axis"):
            return _concat_axis(operands, random)
        case (_, "axis"):
            return random.randrange(max(1, rank))
        case (_, "sizes"):
            axis = drawn["axis"]
            return _partition(shape[axis] if shape and isinstance(axis, int) else 1, random)
        case (_, "index"):
            return random.randrange(len(operands[0]) if isinstance(operands[0], tuple) else 1)
        case (_, "perm"):
            return hints.permutation(rank)
        case ("fill", "dtype") | ("cast", "dtype"):
            return hints.dtype if hints.often() else "float32"
        case ("fill", "shape"):
            return hints.broadcast(target).shape if target else hints.tensor_type().shape
        case ("reshape", "shape"):
            if target is not None and math.prod(target) == math.prod(shape or ()):
                return target
            return _reshaped(shape or (), hints)
        case ("pad", "pads"):
            inner = [i % rank >= 2 or not hints.often() for i in range(2 * rank)]
            widths = tuple(random.randint(0, 2) if each else 0 for each in inner)
            return widths if hints.often() else (0,) * (2 * rank)
        case ("slice", _):
            return _slice_attribute(attr.name, shape or (), drawn, hints)
        case (_, "axes"):
            return tuple(sorted(random.sample(range(rank), random.randint(min(1, rank), rank))))
        case (_, "epsilon"):
            return random.choice([1e-5, 0.1])
        case (_, "value" | "min" | "max"):
            return random.choice([-1.5, -0.5, 0.0, 0.25, 1.0, 2.0])
    return {"bool": random.random() < 0.5, "int": 1, "float": 1.0}.get(attr.kind, 0)


def _concat_axis(operands: Sequence[ValueType], random: Random) -> int:
    """An axis on which the operands differ, or any."""
    known = [each for each in map(_shape, operands) if each]
    rank = min(map(len, known), default=1)
    differing = [i for i in range(rank) if len({each[i] for each in known}) > 1]
    return random.choice(differing or list(range(max(1, rank))))


def _partition(size: int, random: Random) -> Shape:
    parts: list[int] = []
    while size and len(parts) < 3:
        parts.append(random.randint(1, size))
        size -= parts[-1]
    return (*parts, size) if size else tuple(parts)


def _slice_attribute(
    name: str, shape: Shape, drawn: Mapping[str, AttrValue], hints: Hints
) -> AttrValue:
    random = hints.random
    axes = drawn.get("axes")
    if name == "axes" or not isinstance(axes, tuple):
        long = [i for i, size in enumerate(shape) if size > 1]
        return tuple(sorted(random.sample(long, min(len(long), random.choice([0, 1, 1, 2])))))
    starts = drawn.get("starts")
    if name == "starts" or not isinstance(starts, tuple):
        return tuple(random.randrange(shape[axis]) for axis in _ints(axes))
    if name == "ends":
        pairs = zip(_ints(axes), _ints(starts), strict=False)
        return tuple(random.randint(s + 1, max(s + 1, shape[a])) for a, s in pairs)
    return tuple(random.choice([1, 1, 2]) for _ in axes)
