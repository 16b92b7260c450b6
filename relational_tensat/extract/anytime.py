"""Extraction between the iterations of exploration, and the final one.

Each begins from the cheapest graph so far, with the extractor that the run was asked for. Greedy methods do
not see e-nodes that pay only together (merged products above all), so they may stand still while the
optimum moves. Together the extractions between iterations may take as long as exploration has taken, and
``LEAST_S`` each anyway, in which a small e-graph's optimum is proven. Their seconds count as exploration's
if its time is limited. Open questions are left to the final one: it has a limit of its own. A search that
chooses by graphs may then continue from another of several cheapest ones on a slow machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import astuple, fields, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from relational_tensat.base.deadline import GapPatience, now_s
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import ShouldStop, Watch
from relational_tensat.cost import CostModel, CostSource, as_source, graph_cost_us
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.members import Seed
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.few_measurements import Search, settle
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.kept_choice import (
    ExtractionEntry,
    ExtractionProgress,
    KeptChoice,
    seed_of,
)
from relational_tensat.extract.problem import (
    COST_TOLERANCE,
    UNUSED,
    Extraction,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    relative_gap,
)
from relational_tensat.extract.tables import TableProblem, choose, fill_costs, signature_costs

if TYPE_CHECKING:
    from relational_tensat.explore.subgraphs.node_costs import SubgraphArrays

LEAST_S = 0.5
"""So long an extraction between iterations may take in any case."""

LEAST_PROOF_S = 1.0
"""So long a proof may take, whatever the gap."""


class AnytimeExtractor:
    """Extracts from an e-graph while it is explored, and in the end.

    Attributes:
        log: the outcome of each extraction.
        spent_s: wall seconds of the extractions between iterations.
        original_us: cost of the original graph.
        watch: the run's: whether Ctrl-C was pressed; once is enough for all of them.
        chose_latest: whether the graph that is chosen is the last extraction's, and not an earlier one's
            that was cheaper: then another extraction may find less.
    """

    def __init__(
        self,
        egraph: EGraph,
        cost: CostModel,
        options: ExtractionOptions,
        process: ProcessOptions,
        progress: ExtractionProgress,
        watch: Watch | None = None,
        *,
        is_patient: bool = True,
    ) -> None:
        """Begin without a graph.

        Args:
            is_patient: whether each extraction takes its time; else a proof ends once what may still be
                gained is not worth the wait.
        """
        self.log: list[ExtractionEntry] = []
        self.spent_s = 0.0
        self._egraph = egraph
        self._cost = cost
        self._options = options
        self._process = process
        self._progress = progress
        self._is_patient = is_patient
        self.watch = watch or Watch()
        self._started = now_s()
        self._best_us = self.original_us = graph_cost_us(egraph.graph, cost)
        self._kept: KeptChoice | None = None
        self._last: tuple[TableProblem, Extraction] | None = None
        self.chose_latest = False

    def go_on(self) -> None:
        """Begin with what the tables have of extractions before, the cheapest graph of them above all."""
        self._egraph.database.script("extract/forget_final")
        columns = ", ".join(field.name for field in fields(ExtractionEntry))
        text = f"-- extractions\nSELECT {columns} FROM extraction_log ORDER BY rowid"
        self.log += [ExtractionEntry(*row) for row in self._egraph.database.execute(text)]
        if self.log and self._is_cheaper(self.log[-1].best_us):
            last = self.log[-1]
            self._best_us = last.best_us
            self._kept = KeptChoice(self._egraph, last.best_us, last.iteration)

    def after(self, iteration: int) -> str | None:
        """Extract if an iteration is one of those to do so after; return a reason to stop exploring.

        Raises:
            Interrupted: exploration's time is over.
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """
        every = self._options.extract_every
        if every == 0 or iteration % every:
            return "interrupted" if self.watch.happened else None
        if all(entry.iteration != iteration for entry in self.log):
            explored_s = now_s() - self._started - self.spent_s
            self.choose(iteration, again=True, limit_s=max(explored_s - self.spent_s, LEAST_S))
        return "interrupted" if self.watch.happened else None

    def choose(self, iteration: int, *, again: bool = False, limit_s: float | None = None) -> Seed:
        """Return the cheapest graph of what is shown of the e-graph.

        Args:
            again: something else is shown than when that iteration was extracted from before.
            limit_s: seconds that it may take; None for all that an extraction may.

        Raises:
            Interrupted: exploration's time is over.
            KeyboardInterrupt: Ctrl-C was pressed twice.
        """
        is_known = any(entry.iteration == iteration and entry.optimal for entry in self.log)
        if self._last is not None and is_known and not again:
            return seed_of(*self._last)
        start_s, egraph, most_s = now_s(), self._egraph, self._options.time_limit_s
        database = egraph.database
        with self.watch.watching(), self._counting():
            with egraph.transaction():
                egraph.catalogue.flush(database)
            limit_s = most_s if limit_s is None else min(limit_s, most_s)
            search = self._searching(limit_s, lambda: database.is_interrupted)
            table, extraction = self._last = settle(egraph, self._cost, search, self._measuring)
            seed = seed_of(table, extraction)
            kept_choice, best_us = self._kept, self._best_us
            with egraph.transaction():  # what another process would go on from
                if self._is_cheaper(extraction.cost_us):
                    kept_choice = KeptChoice.keep(egraph, seed, iteration)
                    best_us = extraction.cost_us
                entry = _entry(iteration, extraction, best_us, start_s, final=False)
                self._write(entry)
            self._kept = kept_choice
            self._best_us = best_us
            self.log.append(entry)
            self._progress.extracted(entry)
        return seed

    def note(self, seed: Seed, iteration: int) -> None:
        """Keep a graph that was found without extraction: the final graph costs no more.

        Args:
            iteration: after which it was found.
        """
        if not self._is_cheaper(seed.cost_us):
            return
        entry = ExtractionEntry(iteration, seed.cost_us, seed.cost_us, 0.0, False, 0.0, False)
        with self._egraph.transaction():
            self._egraph.catalogue.flush(self._egraph.database)
            kept_choice = KeptChoice.keep(self._egraph, seed, iteration)
            self._write(entry)
        self._kept = kept_choice
        self._best_us = seed.cost_us
        self.log.append(entry)
        self._progress.extracted(entry)

    def prices_us(self, signatures: Sequence[int]) -> list[float]:
        """Return what kernels of these signatures cost, in µs."""
        return signature_costs(self._egraph, self._cost, signatures)

    def subgraph_cost_us(
        self, subgraph: SubgraphArrays, extractor: str, should_stop: ShouldStop | None = None
    ) -> float:
        """Return what an extractor's graph of a subgraph costs; no table shows that.

        Args:
            extractor: ``greedy-dag`` is the derivation from the leaves up alone: the extractor's other ways
                take ten times as long.
        """
        unknown = np.full(subgraph.n_classes, UNUSED, np.int32)
        problem = ExtractionProblem(
            subgraph.cost_us,
            subgraph.node_class,
            subgraph.child_ptr,
            subgraph.child_idx,
            subgraph.n_classes,
            subgraph.root,
            unknown,
        )
        if extractor == "greedy-dag" and not problem.has_negative_costs:
            return dag_cost_us(problem, DagDeriver(problem).derive(problem.cost_us))
        options = replace(self._options, extractor=extractor)
        watch = self.watch.within(options.time_limit_s, should_stop)
        return extract(problem, options, self._process, watch=watch, start=subgraph.known).cost_us

    def finish(self, iteration: int) -> Extraction:
        """Extract from the explored e-graph and write the cheapest choice into ``chosen``.

        Where that finds nothing as cheap as an extraction before it did, it is what that found.

        Args:
            iteration: the last one of exploration.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed twice.
            NoSolutionError: the root has no acyclic derivation.
        """
        start_s = now_s()
        with self.watch.watching():
            search = self._searching(self._options.time_limit_s)
            table, extraction = settle(self._egraph, self._cost, search, self._measuring)
            is_cheaper = self._is_cheaper(extraction.cost_us)
            self._best_us = min(self._best_us, extraction.cost_us)
            entry = _entry(iteration, extraction, self._best_us, start_s, final=True)
            with self._egraph.transaction():
                if self._kept is None or extraction.cost_us <= self._kept.cost_us * (
                    1 + COST_TOLERANCE
                ):
                    choose(self._egraph, table, extraction.choice)
                    self.chose_latest = True
                    if is_cheaper and self._egraph.database.is_file:  # whence others may go on
                        KeptChoice.keep(self._egraph, seed_of(table, extraction), iteration)
                else:
                    self._kept.restore()
                    extraction = _earlier(self._kept, extraction)
                self._write(entry)
        if as_source(self._cost).is_lazy:  # what is shown of others is near what they cost
            fill_costs(self._egraph, self._cost, CostSource.about)
        self.log.append(entry)
        return extraction

    def _is_cheaper(self, cost_us: float) -> bool:
        return cost_us < self._best_us * (1 - COST_TOLERANCE)

    def _searching(self, limit_s: float, should_stop: ShouldStop | None = None) -> Search:
        """Return what searches an extraction problem, beginning from a choice.

        Args:
            limit_s: seconds of all searches together; each may take ``LEAST_S``.
        """
        spent_s = 0.0
        patience = GapPatience(math.inf if self._is_patient else LEAST_PROOF_S)
        is_exact = self._options.extractor == "ilp"  # then there is a best so far

        def progress(cost_us: float, bound_us: float) -> None:
            patience.note(cost_us, bound_us)
            self._progress.extraction(cost_us, bound_us)

        def is_over() -> bool:
            return patience.is_over() or (should_stop is not None and should_stop())

        def search(table: TableProblem, quick: Ints | None) -> Extraction:
            nonlocal spent_s
            start_s = now_s()
            last = self._last[1] if self._last is not None and _same(self._last[0], table) else None
            if last is not None and (last.optimal or last.interrupted or not is_exact):
                self._progress.extraction(last.cost_us, last.bound_us)
                return last  # there is no more to find, or no time for it
            left_s = max(limit_s - spent_s, min(LEAST_S, limit_s))
            before = last.choice if last is not None else None
            if last is None and self._kept is not None:
                before = self._kept.start(table)
            starts = [each for each in (quick, before) if each is not None]
            with nullcontext() if is_exact else self.watch.final():
                found = extract(
                    table.problem,
                    replace(self._options, time_limit_s=left_s),
                    self._process,
                    watch=self.watch.within(left_s, is_over),
                    progress=progress,
                    start=min(starts, key=partial(dag_cost_us, table.problem), default=None),
                )
            spent_s += now_s() - start_s
            return found

        return search

    def _measuring(self) -> AbstractContextManager[None]:
        """Return what measurements are made within: no search that has a best so far."""
        return nullcontext() if as_source(self._cost).is_instant else self.watch.final()

    def _write(self, entry: ExtractionEntry) -> None:
        self._egraph.database.append("extraction_log", [astuple(entry)])

    @contextmanager
    def _counting(self) -> Iterator[None]:
        """Add the block's wall seconds to ``spent_s``."""
        start_s = now_s()
        try:
            with self._egraph.database.stopwatch.phase("extract"):
                yield
        finally:
            self.spent_s += now_s() - start_s


def _entry(
    iteration: int, extraction: Extraction, best_us: float, start_s: float, *, final: bool
) -> ExtractionEntry:
    seconds = now_s() - start_s
    return ExtractionEntry(
        iteration,
        extraction.cost_us,
        best_us,
        extraction.bound_us,
        extraction.optimal,
        seconds,
        final,
    )


def _same(first: TableProblem, second: TableProblem) -> bool:
    """Whether two problems are equal, e-node by e-node."""
    a, b = first.problem, second.problem
    return (
        a.root == b.root
        and np.array_equal(first.enodes, second.enodes)
        and np.array_equal(a.cost_us, b.cost_us)
        and np.array_equal(a.node_class, b.node_class)
        and np.array_equal(a.child_ptr, b.child_ptr)
        and np.array_equal(a.child_idx, b.child_idx)
    )


def _earlier(kept_choice: KeptChoice, extraction: Extraction) -> Extraction:
    """Return the final extraction, but for what it chose: an earlier one was cheaper.

    A bound above that does not hold for the e-nodes that the cycle filter has taken since.
    """
    bound_us = extraction.bound_us if extraction.bound_us <= kept_choice.cost_us else 0.0
    reason = (
        f"the graph is that found after iteration {kept_choice.iteration}: "
        f"the final extraction found none below {extraction.cost_us:.3f} µs"
    )
    return replace(
        extraction,
        cost_us=kept_choice.cost_us,
        bound_us=bound_us,
        gap=relative_gap(kept_choice.cost_us, bound_us),
        optimal=False,
        note="; ".join(filter(None, (extraction.note, reason))),
    )
