"""A run by tree search alone: it begins, in the universe of all that is there, and ends."""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.schema import (
    create_search_tree,
    create_universe,
    create_worlds,
)
from relational_tensat.explore.ending import write_ending
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.members import end_search, show_universe
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import Exploration, rule_stats
from relational_tensat.explore.seed import PricingChooser
from relational_tensat.explore.strategies.mcts.deciding import TreePlace, TreeSearch
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.explore.worlds.applications import write_applications
from relational_tensat.explore.worlds.universe import begin_universe
from relational_tensat.rules.model import Rule


def explore_tree(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    tree_options: TreeOptions,
    chooser: PricingChooser,
    *,
    seed: int = 0,
    observer: Observer | None = None,
) -> Exploration:
    """Grow the worlds of a tree search, decision by decision, until one of its limits is reached.

    Args:
        egraph: worlds begin with its original graph; what explorations before have built is there.
        options: each world has at most ``first_world_nodes()`` e-nodes, all together
            ``universe_limit``.
        chooser: prices e-nodes, and extracts from the worlds that are kept in the end.
        seed: of all that is drawn.
        observer: as ``explore``; an iteration is a decision.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    database, journal = egraph.database, Journal()
    with egraph.transaction():
        if is_explored := end_search(egraph):
            show_universe(egraph)
        create_worlds(database)
        create_universe(database)
        create_search_tree(database)
        universe = begin_universe(egraph, rules, options)
        iteration = universe.world.steps
        place = TreePlace(iteration=iteration, worlds=0, started_s=time.perf_counter())
        search = TreeSearch(
            universe, tree_options, chooser, observer or Observer(), journal, place,
            options.time_limit_s, seed,
        )  # fmt: skip
    reason, worlds = search.run()
    with egraph.transaction():
        if reason != "memory":  # then the tables have what they had before the last decision
            write_applications(database, universe.applications)
        write_ending(egraph, universe.world.matcher, journal)
        egraph.set_stop_reason(reason)
    return Exploration(
        reason,
        iteration + len(search.decisions),
        rule_stats(database, universe.world.rules.first),
        tuple(journal.log),
        sum(entry.statements for entry in journal.log),
        time.perf_counter() - place.started_s,
        worlds,
        is_exhaustive=reason == "saturated" and not is_explored and search.has_all,
        decisions=tuple(search.decisions),
    )
