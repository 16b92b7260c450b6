"""Focus: grow a world, keep the e-nodes of its cheapest graph, grow these again.

What is cheap is found in small worlds one after the other, where one large e-graph would be full of what is
not. All worlds are parts of one universe: what any of them built and united stays, and the last extraction
chooses from all of it.

At each width, first a world is grown from the original graph, as saturation would at that node limit. Then
worlds are grown from what was chosen, time and again, until nothing gets cheaper; and once more so with the
original graph beside it, which ends elsewhere: the first have more room for rewritings of what was chosen,
the second need not undo it. Then wider. So the result costs no more than saturation's at any of the widths
that were reached; a first world that is saturated is saturation's at all of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from relational_tensat.base.watch import Guard
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.published import create_worlds
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.members import Members, show_universe
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import Exploration, WorldReport
from relational_tensat.explore.seed import Chooser, choice_of
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.rules.model import Rule

#: A graph counts as cheaper by more than this part of the cost.
_LEAST_GAIN = 1e-6

#: Why a world is not grown further, and the search goes on.
_GROWN = frozenset({"saturated", "nodes", "iterations"})


#: What follows a world that was grown from the original graph.
_KINDS = ["chosen", "beside"]


class _SearchOver(Exception):  # noqa: N818  # a control signal, not an error
    """No other world is grown; the reason is the argument."""


def explore_focus(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    chooser: Chooser,
    observer: Observer | None = None,
) -> Exploration:
    """Grow worlds of an e-graph, until none has a cheaper graph or a limit is reached.

    Args:
        egraph: holds an original graph and nothing else.
        options: ``iterations`` and ``node_limit`` are for each world; the first are no larger than
            ``world_nodes``, and ``universe_limit`` is for all of them together.
        chooser: extracts from each world.
        observer: as ``explore``.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    return _Focus(egraph, rules, options, chooser, observer or Observer()).run()


class _Focus:
    """A search that is running."""

    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        options: ExplorationOptions,
        chooser: Chooser,
        observer: Observer,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._options = options
        self._chooser = chooser
        self._watch = observer.watch
        self._started = time.perf_counter()
        self._reports: list[WorldReport] = []
        egraph.is_universe = True
        create_worlds(self._database)
        self._saturation = Saturation(egraph, rules, options, observer, None)

    def run(self) -> Exploration:
        with self._saturation.watching() as guard:
            try:
                reason = self._search(guard)
            except _SearchOver as over:
                reason = str(over)
            except Interrupted:
                reason = guard.reason or "interrupted"
            except OutOfMemory:
                reason = "memory"
        show_universe(self._egraph)
        return self._saturation.finish(reason, tuple(self._reports))

    def _search(self, guard: Guard) -> str:
        """Grow worlds of all widths; return why the last was the last."""
        first: WorldReport | None = None
        kinds = _KINDS
        for width in self._widths():
            if first is None or first.stop_reason != "saturated":
                original_us = self._chooser.original_us
                first = self._grow("original", self._original(), original_us, width, guard)
                kinds = _KINDS
            kinds = [kind for kind in kinds if not self._follow(first, kind, width, guard)]
            if not kinds and first.stop_reason == "saturated":
                break  # wider worlds would be the same
        return "focus"

    def _follow(self, world: WorldReport, kind: str, width: int, guard: Guard) -> bool:
        """Grow worlds from a first one, each from the last, until one gains nothing.

        Returns:
            Whether the limit kept nothing out of any of them.
        """
        is_whole = True
        while _has_gained(world):
            world = self._grow(kind, self._seed(world, kind), world.best_us, width, guard)
            is_whole &= world.stop_reason == "saturated"
        return is_whole

    def _widths(self) -> Iterator[int]:
        """Yield node limits of worlds, each twice the last, up to the options'."""
        most = self._options.node_limit
        width = min(self._options.world_nodes, most)
        yield width
        while width < most:
            width = min(2 * width, most)
            yield width

    def _grow(
        self, kind: str, enodes: Sequence[int], seed_us: float, node_limit: int, guard: Guard
    ) -> WorldReport:
        """Grow a world from some e-nodes and extract from it.

        Raises:
            _SearchOver: a limit of the search was reached.
        """
        number = len(self._reports) + 1
        members = Members(self._egraph, number, self._options.universe_limit)
        self._saturation.begin_world(members, enodes, node_limit)
        reason = self._saturation.grow(guard)
        if reason not in _GROWN:
            raise _SearchOver(reason)
        seed = self._chooser.choose(self._saturation.iteration)
        report = WorldReport(
            number,
            kind,
            node_limit,
            seed_us,
            seed.cost_us,
            members.size,
            self._egraph.e_nodes,
            self._saturation.iteration,
            reason,
            time.perf_counter() - self._started,
        )
        with self._egraph.transaction():
            self._database.run("worlds/keep_choice", world=number, enodes=list(seed.enodes))
            self._database.append("world", [report.row])
        self._reports.append(report)
        if self._watch.happened:  # while it was extracted from
            raise _SearchOver("interrupted")
        if self._egraph.e_nodes >= self._options.universe_limit:
            raise _SearchOver("universe")
        return report

    def _seed(self, world: WorldReport, kind: str) -> list[int]:
        """Return what the next world is grown from: the choice of a world, or the original beside it."""
        rows = self._database.run("worlds/choice", world=world.world)
        chosen = list(choice_of(rows, self._egraph.find(self._egraph.root)).values())
        if kind == "chosen":
            return chosen
        return list(dict.fromkeys([*self._original(), *chosen]))

    def _original(self) -> list[int]:
        """Return the e-nodes of the original graph, operands first."""
        return [int(enode) for (enode,) in self._database.run("worlds/original")]


def _has_gained(world: WorldReport) -> bool:
    """Whether a world has a cheaper graph than what it was grown from."""
    return world.best_us < world.seed_us * (1 - _LEAST_GAIN)
