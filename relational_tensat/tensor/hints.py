"""The limits of one random instance, so that sizes and parameters meet more often than by chance.

Where random decisions come from: a seed, or Hypothesis when it shrinks.

Every decision is a number below a bound, and 0 is the simplest: such draws can be recorded as a list of
numbers, and shrink as these numbers do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from random import Random
from typing import TypeVar

from relational_tensat.tensor.types import TensorType

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
