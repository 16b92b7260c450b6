"""Members: the e-nodes of a universe that one subgraph has, so that a step matches and builds within it.

The universe is one e-graph: an equality found in any subgraph holds in all, and an e-node that several have
is built once. ``enode.filtered`` shows one subgraph at a time: e-nodes outside it are neither matched nor
extracted, like those that its cycle filter took. So all statements of a step are those of an e-graph of its
own, but for what is here. E-nodes of targets come into the subgraph, those of the universe and new ones
alike. Cycles are broken by the order in which e-nodes came. Both limits count, the subgraph's and the
universe's.

A subgraph is grown from a seed: a graph of the e-graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.records import record
from relational_tensat.base.watch import ShouldStop
from relational_tensat.egraph.cycles import HEIGHT_STEP, filter_cycles
from relational_tensat.egraph.database import Database
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.enode_rows import fitting_labels
from relational_tensat.egraph.schema import create_subgraphs
from relational_tensat.explore.outcome import SubgraphReport

if TYPE_CHECKING:
    from relational_tensat.explore.subgraphs.node_costs import SubgraphArrays


@record
class Seed:
    """A graph of the e-graph.

    Attributes:
        cost_us: its cost.
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

    def choose(self, iteration: int, *, again: bool = False) -> Seed:
        """Return the cheapest graph of what is shown of the e-graph after an iteration.

        Args:
            again: something else is shown than when that iteration was extracted from before.

        Raises:
            Interrupted: exploration's time is over.
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """


class PricingChooser(Chooser, Protocol):
    """Says what e-nodes cost, and what is extracted from a subgraph that no table shows."""

    def subgraph_cost_us(
        self, subgraph: SubgraphArrays, extractor: str, should_stop: ShouldStop | None = None
    ) -> float:
        """Return what an extractor's graph of a subgraph costs.

        Args:
            extractor: ``greedy``, ``ocf``, ``greedy-dag`` or ``ilp``.
            should_stop: asked meanwhile; if it says so, the best so far counts.
        """

    def note(self, seed: Seed, iteration: int) -> None:
        """Keep a graph that was found without extraction: the final graph costs no more.

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


class Members:
    """The e-nodes of one subgraph, in the table ``subgraph_node``.

    A subgraph is closed under children: each child class of a member has a member.

    Attributes:
        subgraph: its id.
        size: how many there are.
        universe_limit: the most e-nodes that the universe may have.
    """

    def __init__(self, egraph: EGraph, subgraph: int, universe_limit: int) -> None:
        self.subgraph = subgraph
        self.size = 0
        self.universe_limit = universe_limit
        self._egraph = egraph
        self._database = egraph.database
        self._next_place = 1
        self._applications = 0

    def begin(self, enodes: Sequence[int]) -> None:
        """Let the subgraph have some e-nodes, and show it alone.

        Args:
            enodes: operands first, and closed under children.
        """
        self._database.run("subgraphs/begin", subgraph=self.subgraph, enodes=list(enodes))
        self._database.run("subgraphs/show", subgraph=self.subgraph)
        self._label(enodes)
        filter_cycles(self._database, self.subgraph)  # of a class there may be several
        self.size = len(enodes)
        self._next_place = len(enodes) + 1

    def state(self) -> tuple[int, int, int]:
        """Return what ``restore`` goes back to where a transaction is undone."""
        return self.size, self._next_place, self._applications

    def restore(self, state: tuple[int, int, int]) -> None:
        """Go back to a state."""
        self.size, self._next_place, self._applications = state

    def enter(self, iteration: int) -> None:
        """Let what is in ``entering`` come into the subgraph."""
        database = self._database
        where = {"subgraph": self.subgraph, "last": self._applications, "place": self._next_place}
        applications = database.change("subgraphs/enter_applications", **where, iteration=iteration)
        count = database.change("subgraphs/enter", **where)
        database.run("subgraphs/show_entering", stamp=self._egraph.clock)
        self.size += count
        self._next_place += count
        self._applications += applications

    def merge_equal(self) -> None:
        """Let the oldest of equal e-nodes, those of ``congruent``, stay and be a member for all of them."""
        database = self._database
        if database.change("subgraphs/hidden_oldest"):
            database.run("subgraphs/show_oldest")
            database.run("subgraphs/keep_oldest")
        if database.change("subgraphs/equal_members"):
            database.run("subgraphs/drop_equal_members")
            database.run("subgraphs/merge_equal_members")
            self.size = int(database.run("subgraphs/size", subgraph=self.subgraph)[0][0])

    def _label(self, enodes: Sequence[int]) -> None:
        """Give the classes of the first e-nodes their height labels, and all others the lowest."""
        heights: dict[int, int] = {}
        for owner, children in self._database.run("subgraphs/shown_nodes", enodes=list(enodes)):
            height = HEIGHT_STEP + max(heights.get(child, 0) for child in children)
            heights[owner] = max(height, heights.get(owner, 0))
        self._database.run("subgraphs/lower_heights")
        self._database.run(
            "cycles/raise_heights",
            classes=list(heights),
            heights=list(fitting_labels(list(heights.values()))),
        )


def show_universe(egraph: EGraph) -> None:
    """Show all e-nodes of the universe: extraction chooses from those of all subgraphs."""
    egraph.database.run("subgraphs/show_all")


def follow_members(database: Database, became: NDArray[np.int32]) -> None:
    """Let subgraphs have, for e-nodes that have become others, these: the first one's place and reason
    stay.

    Args:
        became: by id, the e-node that it is by now; 0 where there was none.
    """
    gone = np.flatnonzero((became != np.arange(len(became))) & (became > 0))
    if len(gone):
        ids = {"gone": gone.tolist(), "kept": became[gone].tolist()}
        if database.change("subgraphs/became_members", **ids):
            database.run("subgraphs/drop_equal_members")
            database.run("subgraphs/merge_equal_members")


def begin_subgraphs(egraph: EGraph) -> None:
    """Make the tables of a search over subgraphs, unless they are there.

    They say that the e-graph is a universe, in which e-nodes of several subgraphs may form cycles.
    """
    if egraph.is_universe:
        return
    with egraph.transaction():
        create_subgraphs(egraph.database)
    egraph.is_universe = True


def end_search(egraph: EGraph) -> bool:
    """Forget the subgraphs of the exploration before this one; their e-nodes stay, and are all shown.

    They may form cycles. So the transaction that this is a part of breaks these, or begins other subgraphs.

    Returns:
        whether there was an exploration, perhaps another process's.
    """
    if not (egraph.clock or egraph.is_universe):
        return False
    with egraph.transaction():
        egraph.database.script("explore/forget_exploration")
    egraph.is_universe = False
    return True


def original_nodes(database: Database) -> list[int]:
    """Return the e-nodes of the original graph, operands first."""
    return [int(enode) for (enode,) in database.run("subgraphs/original")]


def keep_subgraph(database: Database, report: SubgraphReport, chosen: Sequence[int]) -> None:
    """Write down a subgraph that was grown, and its cheapest graph, in the caller's transaction.

    Args:
        chosen: the e-nodes of that graph, operands first.
    """
    database.run("subgraphs/keep_choice", subgraph=report.subgraph, enodes=list(chosen))
    database.append("subgraph", [report.row])
