"""Where random decisions come from: a seed, or Hypothesis when it shrinks.

Every decision is a number below a bound, and 0 is the simplest: what draws this way can be recorded
as a list of numbers, and shrinks as these numbers do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import TypeVar

_T = TypeVar("_T")


class Choices(ABC):
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


class SeededChoices(Choices):
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
