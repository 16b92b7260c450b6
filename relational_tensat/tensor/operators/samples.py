"""How random applications of an operator are drawn: operands that fit it, and bounds on results.

Nothing suggested here has to be right, only often right: the operator's own shape rule decides.

Random decisions come from a seed, or from Hypothesis when it shrinks. Every decision is a number below a
bound, and 0 is the simplest: such draws can be recorded as a list of numbers, and shrink as these numbers
do. ``Hints`` are the limits of one random instance, so that sizes and parameters meet more often than by
chance.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from random import Random
from typing import ClassVar, NamedTuple, TypeVar

from relational_tensat.tensor.operators.attributes import Attr
from relational_tensat.tensor.operators.traits import Use
from relational_tensat.tensor.types import Attrs, AttrValue, TensorType, ValueType

#: Scale of random weights that are added: small, so that the inputs and not these decide the outputs.
ADDED_SCALE = 0.1
#: Numbers for attributes that values are computed with: of both signs, 0 and 1 among them.
NUMBERS = (1.0, 0.0, 2.0, -1.5, -0.5, 0.25)


class PartialApplication(NamedTuple):
    """An application of an operator while it is drawn.

    Attributes:
        result: the type that the result should have; None if any will do.
        operands: their types; None for those that are not known yet.
        attrs: the attributes that are known already.
    """

    result: ValueType | None
    operands: Sequence[ValueType | None]
    attrs: Mapping[str, AttrValue]

    @property
    def target(self) -> Shape | None:
        """The shape that the result should have, if it is one tensor."""
        return shape_of(self.result)

    @property
    def shapes(self) -> list[Shape | None]:
        """The operands' shapes; None of tuples and of what is not known."""
        return [shape_of(operand) for operand in self.operands]


class Sampling:
    """How random applications and values are drawn; part of ``Operator``."""

    #: The use of each operand; the last entry holds for all further ones, an empty tuple means ``VALUE``.
    uses: ClassVar[tuple[Use, ...]] = ()
    #: Whether it has no value where an operand is 0.
    divides: ClassVar[bool] = False

    def use_of(self, operand: int) -> Use:
        """Return what the operator does with an operand, given by its index."""
        return self.uses[min(operand, len(self.uses) - 1)] if self.uses else Use.VALUE

    def index_range(self, inputs: tuple[ValueType, ...], attrs: Attrs) -> int:
        """Return how many positions there are for operands of ``Use.INDEX``."""
        raise NotImplementedError(f"{type(self).__name__} has no operand of Use.INDEX")

    def summed_terms(self, inputs: tuple[ValueType, ...]) -> int | None:
        """Return how many products of elements of the first two operands an element is the sum of.

        None unless the result is such sums (matrix products, convolutions).
        """
        return None

    def growth(self, sizes: Sequence[float], inputs: tuple[ValueType, ...], attrs: Attrs) -> float:
        """Estimate the root mean square of the result from those of the operands.

        The largest operand's unless overridden; not called for operators with ``summed_terms``.
        """
        return max(sizes, default=1.0)

    def suggest_operand(
        self, index: int, partial: PartialApplication, hints: Hints
    ) -> TensorType | None:
        """Suggest a type for the operand ``index``, which is not known yet; None for no idea.

        The result's unless overridden.
        """
        return partial.result if isinstance(partial.result, TensorType) else None

    def suggest_attribute(self, attr: Attr, partial: PartialApplication, hints: Hints) -> AttrValue:
        """Suggest a value for an attribute without ``choices``, all operands being known.

        Unless overridden one of ``attr.samples``, or what suits the kind, and axes of the first
        operand for ``axis`` and ``axes``.
        """
        if attr.samples:
            return hints.choices.choice(attr.samples)
        shape = partial.shapes[0] if partial.operands else None
        rank = len(shape or ())
        match attr.name, attr.kind:
            case "axis", _:
                return hints.choices.below(max(1, rank))
            case "axes", _:
                count = hints.choices.between(min(1, rank), rank)
                return tuple(hints.choices.sample(range(rank), count))
            case _, "dtype":
                return hints.dtype if hints.choices.often() else "float32"
            case _, "bool":
                return hints.choices.below(2) == 1
        return _PLAIN.get(attr.kind, 0)


_PLAIN: dict[str, AttrValue] = {
    "int": 1, "float": 1.0, "str": "", "ints": (), "floats": (), "padding": "valid",
}  # fmt: skip


def shape_of(kind: ValueType | None) -> Shape | None:
    """Return the shape of a tensor; None of a tuple, or of what is not known."""
    return kind.shape if isinstance(kind, TensorType) else None


def ints_in(value: AttrValue) -> Shape:
    """Return the integers of an attribute's value."""
    return (
        tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else ()
    )


_T = TypeVar("_T")


class RandomChoices(ABC):
    """A source of decisions."""

    @abstractmethod
    def below(self, bound: int) -> int:
        """Return a number in 0..bound-1."""

    def between(self, low: int, high: int) -> int:
        """Return a number in low..high."""
        return low + self.below(high - low + 1)

    def choice(self, options: Sequence[_T]) -> _T:
        """Return one of some options; the first is the simplest."""
        return options[self.below(len(options))]

    def often(self) -> bool:
        """Return True three times out of four."""
        return self.below(4) < 3

    def weighted(self, *weights: int) -> int:
        """Return a number in 0..len(weights)-1, each as often as its weight says."""
        left = self.below(sum(weights))
        for index, weight in enumerate(weights):
            if left < weight:
                return index
            left -= weight
        return len(weights) - 1

    def sample(self, options: Sequence[_T], count: int) -> list[_T]:
        """Return some of the options, in their order."""
        left = list(range(len(options)))
        picked = [left.pop(self.below(len(left))) for _ in range(count)]
        return [options[index] for index in sorted(picked)]

    def shuffled(self, options: Sequence[_T]) -> list[_T]:
        """Return the options in another order; as they are is the simplest."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(len(left))]


class SeededChoices(RandomChoices):
    """Decisions that a seed determines, recorded.

    Attributes:
        taken: the decisions since ``restart``, those with a bound above 1.
    """

    def __init__(self, seed: int | str) -> None:
        self._fraction = Random(seed).random
        self.taken: list[int] = []

    def restart(self) -> None:
        """Forget the decisions that were recorded."""
        self.taken = []

    def below(self, bound: int) -> int:
        """Return a number in 0..bound-1."""
        if bound == 1:
            return 0
        number = int(self._fraction() * bound)
        self.taken.append(number)
        return number


Shape = tuple[int, ...]

_DTYPES = (
    *("float32",) * 12, "float64", "float16", "bfloat16", "int64", "int64", "int32", "int8",
    "uint8", "bool",
)  # fmt: skip
_RANKS = (1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 0)
_SIZES = ((1, 2), (1, 2, 3), (1, 2, 3, 4, 6))


class Hints:
    """Choices that all parts of one instance share.

    Attributes:
        dtype: the element type of most tensors.
        rank: of most tensors.
        sizes: three dimensions to choose from.
        cuts: the sizes of pieces that were joined, by their sum: cut again, they meet.
    """

    def __init__(self, choices: RandomChoices) -> None:
        self.choices = choices
        self.dtype = choices.choice(_DTYPES)
        self.rank = choices.choice(_RANKS)
        among = _SIZES[choices.weighted(1, 1, 2)]
        self.sizes = [choices.choice(among) for _ in range(3)]
        self.cuts: dict[int, Shape] = {}
        self._perm: dict[int, Shape] = {}

    @cached_property
    def spatial(self) -> int:
        """How many spatial dimensions images have."""
        return self.choices.choice((1, 2, 2, 2, 2, 3))

    @cached_property
    def image(self) -> list[int]:
        """Spatial sizes of images, as many as there may be."""
        return [self.choices.between(1, 6) for _ in range(3)]

    @cached_property
    def kernel(self) -> list[int]:
        """Kernel sizes of convolutions and pools."""
        return [self.choices.choice((1, 2, 3, 3)) for _ in range(3)]

    @cached_property
    def stride(self) -> list[int]:
        """Strides of convolutions and pools."""
        return [self.choices.choice((1, 2, 3))] * 3

    def size(self) -> int:
        """Return a dimension."""
        return self.choices.choice(self.sizes)

    def type(self, shape: Sequence[int]) -> TensorType:
        """Return a tensor of the instance's element type."""
        return TensorType(self.dtype, tuple(shape))

    def tensor_type(self, rank: int | None = None) -> TensorType:
        """Return any tensor."""
        return self.type([self.size() for _ in range(self.rank if rank is None else rank)])

    def image_type(self, batch: int | None = None, channels: int | None = None) -> TensorType:
        """Return an operand of a convolution or pool."""
        sizes = [s if self.choices.often() else self.choices.between(1, 6) for s in self.image]
        head = [batch or self.size(), channels or self.size()]
        return self.type([*head, *sizes[: self.spatial]])

    def broadcast(self, shape: Shape) -> TensorType:
        """Return an operand that broadcasts into a shape: sizes 1, leading axes left out."""
        choices = self.choices
        cut = choices.choice((0, 0, 0, 1, 2, len(shape)))
        match choices.weighted(4, 3, 3):
            case 1 if shape:  # all axes but one
                dropped = choices.below(len(shape))
                return self.type([1 if i == dropped else size for i, size in enumerate(shape)])
            case 2:  # one axis only, as biases have
                keep = choices.choice((1, len(shape) - 1))
                sizes = [size if i == keep else 1 for i, size in enumerate(shape)]
            case _:
                sizes = [size if choices.often() else 1 for size in shape]
        return self.type(sizes[cut:])

    def grown(self, shape: Shape) -> Shape:
        """Return a shape that another one broadcasts into."""
        sizes = [self.size() if size == 1 else size for size in shape]
        new_axes = self.choices.choice((0, 0, 1, 2))
        return (*(self.size() for _ in range(new_axes)), *sizes)

    def ints(self, count: int, low: int, high: int) -> Shape:
        """Return integers in low..high."""
        return tuple(self.choices.between(low, high) for _ in range(count))

    def pieces(self, size: int) -> Shape:
        """Return sizes of pieces: those of what was joined before, or any."""
        if size in self.cuts and self.choices.often():
            return self.cuts[size]
        parts: list[int] = []
        while size and len(parts) < 3:
            parts.append(self.choices.between(1, size))
            size -= parts[-1]
        return (*parts, size) if size else tuple(parts)

    def reshaped(self, shape: Shape) -> Shape:
        """Return another shape of as many elements, or the same one."""
        choices, size = self.choices, math.prod(shape)
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
                return tuple(length for length in shape if length != 1)
            case 6:
                fixed_axes = choices.below(2)  # the last axis, mostly what a product sums over
                cut = len(shape) - fixed_axes
                return (*choices.shuffled(shape[:cut]), *shape[cut:])
        return shape

    def permutation(self, rank: int) -> Shape:
        """Return an order of axes; the same one again, mostly."""
        if rank not in self._perm or self.choices.below(5) == 4:
            order = list(range(rank))
            match self.choices.weighted(1, 5, 4):
                case 1 if rank > 1:
                    order[-1], order[-2] = order[-2], order[-1]
                case 2:
                    order = self.choices.shuffled(order)
            self._perm[rank] = tuple(order)
        return self._perm[rank]
