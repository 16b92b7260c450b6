"""A run by tree search alone: it begins, or goes on from what another process left, and ends."""

from __future__ import annotations

import time
from collections.abc import Sequence

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.published import (
    create_search_tree,
    create_universe,
    create_worlds,
)
from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.explore.ending import write_ending
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import DecisionReport, Exploration, read_log, rule_stats
from relational_tensat.explore.seed import PricingChooser
from relational_tensat.explore.strategies.mcts.deciding import Place, TreeSearch
from relational_tensat.explore.strategies.mcts.tree_options import TreeOptions
from relational_tensat.explore.worlds.applications import write_applications
from relational_tensat.explore.worlds.universe import begin_universe, restore_universe
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
    start: Checkpoint | None = None,
) -> Exploration:
    """Grow the worlds of a tree search, decision by decision, until one of its limits is reached.

    Args:
        egraph: holds an original graph and nothing else.
        options: each world has at most ``first_world_nodes()`` e-nodes, all together
            ``universe_limit``.
        chooser: prices e-nodes, and extracts from the worlds that are kept in the end.
        seed: of all that is drawn.
        observer: as ``explore``; an iteration is a decision.
        start: where another process left a search of this e-graph, with these rules and options; it is
            resumed there, as ``explore`` resumes an exploration.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    database = egraph.database
    with egraph.transaction():
        create_worlds(database)  # of the search before, or when it was about to end
        if start is None:
            if database.is_file:  # of an exploration before this one
                database.script("explore/forget_exploration")
            create_universe(database)
            create_search_tree(database)
            journal = Journal([])
            universe = begin_universe(egraph, rules, options)
        else:
            journal = Journal(read_log(database))
            universe = restore_universe(egraph, rules, options, start)
            seconds = enumerate(start.rule_seconds, start=start.first_rule)
            universe.world.matcher.rule_seconds = {rule: taken for rule, taken in seconds if taken}
        before = DecisionReport.read(database)
        place = Place(
            iteration=0,
            worlds=0,
            original_nodes=egraph.e_nodes if start is None else start.original,
            started_s=time.perf_counter() - (before[-1].seconds if before else 0.0),
        )
        search = TreeSearch(
            universe, tree_options, chooser, observer or Observer(), journal, place,
            options.time_limit_s,
        )  # fmt: skip
        if start is None:
            search.begin(seed)
        else:
            search.resume(start.iteration)
    reason, worlds = search.run()
    with egraph.transaction():
        if reason != "memory":  # then the tables have what they had before the last decision
            write_applications(database, universe.applications)
        database.run("tree/forget_state")
        write_ending(egraph, universe.world.matcher, journal)
        egraph.set_stop_reason(reason)
    return Exploration(
        reason,
        len(search.decisions),
        rule_stats(database, universe.world.rules.first),
        tuple(journal.log),
        sum(entry.statements for entry in journal.log),
        time.perf_counter() - place.started_s,
        worlds,
        is_exhaustive=reason == "saturated" and start is None and search.has_all,
        decisions=tuple(search.decisions),
    )
