"""What a search need not go on with: what cannot become cheaper than what it has found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from relational_tensat.mugraph.search.block_terms import Operand
from relational_tensat.mugraph.search.found import FoundKernel, Route

#: Ways to some tensors: each has, for each kernel before, what it can be.
Ways: TypeAlias = tuple[tuple[tuple[FoundKernel, ...], ...], ...]


class Bound(Protocol):
    """Knows what was found so far, and what kernels take at least.

    All times are of the program's own sizes. The search leaves out what was stored by some kernels if
    ``is_over`` is true of what every μGraph that goes on from there takes at least: these kernels, and one
    more, which loads what they have stored for it and stores the program's outputs. That holds of
    several more, too: the first of them loads all that, the last one stores the outputs, and a kernel
    takes a launch and what it loads and stores, each once, at least. (Where a program has several
    outputs, a kernel need not load all that is stored for it: then loads do not count.)
    """

    def note(self, route: Route) -> None:
        """Take note of what was found."""

    def least_kernel_us(self, tensors: Iterable[Operand]) -> float:
        """Return what no kernel takes less than that loads or stores some tensors, and perhaps others."""

    def least_before_us(self, ways: Ways) -> float:
        """Return what the cheapest of some ways takes; infinite where none fits a device."""

    def is_over(self, least_us: float) -> bool:
        """Whether something that takes no less is dearer than what was found; never where nothing was."""


class NoBound:
    """Leaves out nothing."""

    def note(self, route: Route) -> None:
        """Forget it."""

    def least_kernel_us(self, tensors: Iterable[Operand]) -> float:
        """Return that nothing is known."""
        return 0.0

    def least_before_us(self, ways: Ways) -> float:
        """Return that nothing is known."""
        return 0.0

    def is_over(self, least_us: float) -> bool:
        """Return that nothing is."""
        return False
