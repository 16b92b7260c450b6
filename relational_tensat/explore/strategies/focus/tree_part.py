"""A tree search as a part of focus: it finds what is missed where multi-pattern rules fire only once.

It begins with the original graph, in the universe of the worlds that focus has grown, and leaves two worlds
there: the cheapest of any rollout, and that of its decisions. What its rollouts built stays for extraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from relational_tensat.base.watch import Guard
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.schema import create_search_tree, create_universe
from relational_tensat.explore.members import show_universe
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import WorldReport
from relational_tensat.explore.seed import PricingChooser
from relational_tensat.explore.strategies.mcts.deciding import TreePlace, TreeSearch
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.explore.strategies.saturation import Saturation
from relational_tensat.explore.worlds.universe import Universe

#: Kinds of worlds that a tree search leaves.
TREE_KINDS = ("rollout", "decision")

#: Part of the time that is left which a tree search may take.
_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class TreePart:
    """What a tree search needs of the search that it is a part of."""

    egraph: EGraph
    saturation: Saturation
    options: TreeOptions
    chooser: PricingChooser
    observer: Observer
    seed: int

    def run(
        self, n_worlds: int, started_s: float, guard: Guard
    ) -> tuple[str, tuple[WorldReport, ...]]:
        """Search; return why that ended, and the worlds, which are written down.

        Args:
            n_worlds: how many there are before.
            started_s: when the search began, by ``time.perf_counter``.
            guard: of the search: it stops no statement meanwhile.
        """
        with guard.deferring():
            search = self._set_up(n_worlds, started_s, guard)
            reason, worlds = search.run()
        self.saturation.go_on_after(search.iteration)
        return reason, worlds

    def _set_up(self, n_worlds: int, started_s: float, guard: Guard) -> TreeSearch:
        """Begin the tree search."""
        database, saturation = self.egraph.database, self.saturation
        left_s = guard.seconds_left
        limit_s = None if left_s == math.inf else _SHARE * left_s
        with self.egraph.transaction():
            show_universe(self.egraph)
            create_universe(database)
            create_search_tree(database)
            saturation.world.end_members()
            universe = Universe(saturation.world)
            universe.find()
            place = TreePlace(
                iteration=saturation.iteration,
                worlds=n_worlds,
                started_s=started_s,
                is_all=False,
            )
            return TreeSearch(
                universe, self.options, self.chooser, self.observer, saturation.journal, place,
                limit_s, self.seed,
            )  # fmt: skip
