"""Growing: the applications that promise most, some at a time, and the cheapest graph after each time.

What an application promises depends on the cheapest graph (``ranking``). So it is extracted, and all
applications are ranked anew, whenever the e-graph has grown by a small part. Those that promise the same
come in a random order, in which what earlier results needed (``learn_from``) comes earlier. Rules,
applications and what they build are those of any other exploration: only the order is another, and so
what a limit leaves out.

In a file, the transaction of an iteration also writes the applications and a checkpoint. What is drawn
depends on the seed and the iteration only, so that a process that resumes draws the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.watch import Guard
from relational_tensat.egraph.database import Interrupted, OutOfMemory
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.egraph.published import create_universe
from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.explore.ending import write_ending
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.learning import read_uses, weights_of
from relational_tensat.explore.observer import Observer
from relational_tensat.explore.outcome import Exploration, IterationReport, read_log, rule_stats
from relational_tensat.explore.seed import RankingChooser
from relational_tensat.explore.strategies.best_first.ranking import Ranking
from relational_tensat.explore.worlds.application_rows import write_applications
from relational_tensat.explore.worlds.applications import WAITING
from relational_tensat.explore.worlds.masks import Masks
from relational_tensat.explore.worlds.node_arrays import Ints
from relational_tensat.explore.worlds.node_costs import NodeCosts
from relational_tensat.explore.worlds.pairs import Looked
from relational_tensat.explore.worlds.universe import Universe, begin_universe, restore_universe
from relational_tensat.explore.worlds.universe_checkpoint import write_universe_checkpoint
from relational_tensat.rules.model import Rule

#: By this part of its e-nodes an e-graph grows between two rankings, and by so many e-nodes at least.
_PART = 0.1
_LEAST = 50

#: Estimates that differ by less, in µs, promise the same.
_SAME_US = 0.01


def explore_best_first(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    chooser: RankingChooser,
    *,
    seed: int = 0,
    observer: Observer | None = None,
    start: Checkpoint | None = None,
) -> Exploration:
    """Grow an e-graph by the applications that promise most, until a limit is reached or none is left.

    Args:
        egraph: holds an original graph and nothing else.
        options: ``node_limit`` and ``time_limit_s`` end it; iterations are not limited, and multi-pattern
            rules take part in all of them.
        chooser: extracts after each time.
        seed: of the order of what promises the same.
        observer: as ``explore``.
        start: where another process left a search of this e-graph, with these rules and options; it is
            resumed there, as ``explore`` resumes an exploration.

    Raises:
        UnsoundRuleError: as ``explore``.
    """
    growth = _Growth(egraph, rules, options, chooser, seed, observer or Observer(), start)
    return growth.run()


class _Growth:
    """A search that is running."""

    def __init__(
        self,
        egraph: EGraph,
        rules: Sequence[Rule],
        options: ExplorationOptions,
        chooser: RankingChooser,
        seed: int,
        observer: Observer,
        start: Checkpoint | None,
    ) -> None:
        self._egraph = egraph
        self._database = egraph.database
        self._options = options
        self._chooser = chooser
        self._observer = observer
        self._seed = seed
        self._started = time.perf_counter()
        self._journal = Journal([])
        self._iteration = 0
        self._original_nodes = egraph.e_nodes
        self._universe: Universe
        self._looked = Looked()
        self._saw_all = start is None
        limits = replace(options, universe_limit=options.node_limit)  # one world has it all
        with egraph.transaction():
            if start is None:
                self._begin(rules, limits)
            else:
                self._resume(rules, limits, start)
        self._costs = NodeCosts(egraph.catalogue, chooser.prices_us)
        self._learned = weights_of(read_uses(options.learn_from))

    def _begin(self, rules: Sequence[Rule], limits: ExplorationOptions) -> None:
        """Begin with the original graph."""
        if self._database.is_file:  # of an exploration before this one
            self._database.script("explore/forget_exploration")
            create_universe(self._database)
        self._universe = begin_universe(self._egraph, rules, limits)
        self._write_checkpoint()

    def _resume(self, rules: Sequence[Rule], limits: ExplorationOptions, start: Checkpoint) -> None:
        """Continue from what another process left in the tables."""
        self._journal = Journal(read_log(self._database))
        self._iteration, self._original_nodes = start.iteration, start.original
        self._universe = restore_universe(self._egraph, rules, limits, start)

    def run(self) -> Exploration:
        guard = self._observer.watch.guard(self._database.interrupt, self._options.time_limit_s)
        with guard.watching():
            try:
                reason = self._grow(guard)
            except Interrupted:
                reason = guard.reason or "interrupted"
            except OutOfMemory:
                reason = "memory"
        self._database.resume()
        return self._finish(reason)

    def _grow(self, guard: Guard) -> str:
        """Iterate until there is a reason to stop; return it."""
        reason = self._follow(guard) if self._iteration else None
        while reason is None:
            waiting = self._waiting()
            if not len(waiting):
                return self._limit if self._universe.is_full else "saturated"
            if self._universe.is_full or self._egraph.e_nodes >= self._options.node_limit:
                return self._limit
            self._iterate(waiting)
            if self._observer.progress is not None:
                self._observer.progress(self._journal.log[-1])
            reason = self._follow(guard)
        return reason

    @property
    def _limit(self) -> str:
        """Which limit it is that leaves something out."""
        return "applications" if self._universe.is_crowded else "nodes"

    def _follow(self, guard: Guard) -> str | None:
        """Do what follows an iteration; return a reason to stop."""
        after = self._observer.after
        reason = None if after is None else after(self._iteration)
        return reason or guard.reason

    def _waiting(self) -> Ints:
        """Return the applications that are found and not carried out."""
        arrays, applications = self._universe.arrays, self._universe.applications
        there = np.flatnonzero(arrays.exists).astype(np.int32)
        with self._universe.world.transaction():  # what is judged goes into the tables
            self._universe.pair(Masks([there], arrays.size), self._looked)
        return np.flatnonzero(applications.states == WAITING).astype(np.int32)

    def _iterate(self, waiting: Ints) -> None:
        """Extract, rank, carry out what comes first."""
        started, statements = time.perf_counter(), self._database.statements
        unions, rejected = self._universe.unions, self._universe.rejected
        chosen = self._first(waiting)
        self._iteration += 1
        with self._universe.world.transaction():
            self._universe.build(chosen, self._iteration)
            rules, counts = np.unique(self._universe.applications.rules[chosen], return_counts=True)
            matches = dict(zip(rules.tolist(), counts.tolist(), strict=True))
            self._journal.note_matches(self._iteration, matches)
            self._journal.note_iteration(
                IterationReport(
                    self._iteration,
                    self._egraph.e_nodes,
                    self._egraph.e_classes,
                    len(chosen),
                    self._universe.unions - unions,
                    self._universe.rejected - rejected,
                    self._database.statements - statements,
                    time.perf_counter() - started,
                )
            )
            self._write_checkpoint()

    def _first(self, waiting: Ints) -> Ints:
        """Return the applications that promise most, as many as the next iteration may build."""
        universe = self._universe
        seed = self._chooser.choose(self._iteration, anew=True)
        self._costs.refresh(universe.arrays)
        ranking = Ranking(universe, self._costs, seed, self._chooser.slack())
        estimates = np.round(ranking.estimates_us(waiting) / _SAME_US)
        random = np.random.default_rng((self._seed, self._iteration))
        turns = random.standard_exponential(len(waiting)) / self._weights(waiting)
        order = np.lexsort((turns, estimates))
        sizes = universe.templates.sizes(universe.applications.instances[waiting[order]])
        most = max(int(_PART * self._egraph.e_nodes), _LEAST)
        fitting = int(np.searchsorted(np.cumsum(sizes), most, side="right"))
        return waiting[order[: max(fitting, 1)]]

    def _weights(self, places: Ints) -> NDArray[np.float64]:
        """Return how much earlier than others applications come that promise the same."""
        weights = np.ones(len(places))
        if not self._learned:
            return weights
        applications, rules = self._universe.applications, self._universe.world.rules
        for rule_id in np.unique(applications.rules[places]).tolist():
            rows = np.flatnonzero(applications.rules[places] == rule_id)
            rule = rules.rule(rule_id)
            operands = applications.bindings[places[rows]][:, list(rule.slots)]
            kinds, kind = np.unique(self._costs.weight_only[operands], axis=0, return_inverse=True)
            learned = [self._learned.get((rule.rule.name, tuple(k)), 1.0) for k in kinds.tolist()]
            weights[rows] = np.array(learned)[kind.reshape(-1)]
        return weights

    def _write_checkpoint(self) -> None:
        """Write down what another process would need to resume; in memory, none could."""
        if not self._database.is_file:
            return
        write_universe_checkpoint(
            self._universe, self._journal, self._iteration, self._original_nodes
        )

    def _finish(self, reason: str) -> Exploration:
        """Write down what is not written yet, and why it ended; return how it went."""
        database = self._database
        with self._egraph.transaction():
            if database.is_file and reason != "memory":
                # else the tables have what they had before the last iteration
                write_applications(database, self._universe.applications)
            write_ending(self._egraph, self._universe.world.matcher, self._journal)
            self._egraph.set_stop_reason(reason)
        log = self._journal.log
        return Exploration(
            reason,
            self._iteration,
            rule_stats(database, self._universe.world.rules.first),
            tuple(log),
            sum(entry.statements for entry in log),
            time.perf_counter() - self._started,
            is_exhaustive=reason == "saturated" and self._saw_all and not self._universe.rejected,
        )
