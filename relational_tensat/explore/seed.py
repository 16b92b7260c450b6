"""What a world is grown from: a graph of the e-graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from relational_tensat.base.records import record
from relational_tensat.base.watch import ShouldStop
from relational_tensat.explore.worlds.node_costs import WorldArrays


@record
class Seed:
    """A graph of the e-graph.

    Attributes:
        cost_us: what it costs.
        enodes: its e-nodes, operands first.
    """

    cost_us: float
    enodes: tuple[int, ...]


class Chooser(Protocol):
    """Extracts while the e-graph is explored.

    Attributes:
        original_us: cost of the original graph.
    """

    original_us: float

    def choose(self, iteration: int, *, anew: bool = False) -> Seed:
        """Return the cheapest graph of what is shown of the e-graph after an iteration.

        Args:
            anew: something else is shown than when that iteration was extracted from before.

        Raises:
            Interrupted: exploration's time is over.
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """


class PricingChooser(Chooser, Protocol):
    """Says what e-nodes cost, and what is extracted from a world that no table shows."""

    def world_cost_us(
        self, world: WorldArrays, extractor: str, should_stop: ShouldStop | None = None
    ) -> float:
        """Return what an extractor's graph of a world costs.

        Args:
            extractor: ``greedy``, ``greedy-dag`` or ``ilp``.
            should_stop: asked meanwhile; if it says so, the best so far counts.
        """

    def note(self, seed: Seed, iteration: int) -> None:
        """Keep a graph that was found without extraction: what is chosen in the end costs no more.

        Args:
            iteration: after which it was found.
        """

    def prices_us(self, signatures: Sequence[int]) -> Sequence[float]:
        """Return what kernels of these signatures cost, in µs."""


def choice_of(rows: Iterable[tuple[int, int, list[int]]], root: int) -> dict[int, int]:
    """Return the e-node that is chosen for each class that the root needs, children first.

    Where classes were united that a choice has both of, the e-node that stood lower stands for both.

    Args:
        rows: of a choice that was kept, children first: e-nodes with their classes and children as they
            are now, 0 for no child.
    """
    nodes: dict[int, tuple[int, list[int]]] = {}
    for enode, owner, children in rows:
        nodes.setdefault(owner, (enode, [child for child in children if child]))
    needed: set[int] = set()
    stack = [root]
    while stack:
        owner = stack.pop()
        if owner not in needed:
            needed.add(owner)
            stack += nodes[owner][1]
    return {owner: enode for owner, (enode, _) in nodes.items() if owner in needed}
