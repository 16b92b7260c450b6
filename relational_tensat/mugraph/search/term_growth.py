"""Growing the terms of a level to their largest size: here, or on any runner.

Configurations have nothing in common but the abstract e-graph, so each process takes some of them, with a
database of its own, and sends back what it has. The findings are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.runner import CancelledPart, is_stopping, runner
from relational_tensat.base.watch import Guard, Watch
from relational_tensat.egraph.database import Database, Interrupted
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import GrownTerms, Job, SearchCounts
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import Structure

#: Fewer configurations are not worth another process.
_LEAST_CONFIGURATIONS = 256
#: So that none waits long for the last one.
_PARTS_OF_EACH = 3


@dataclass(frozen=True, slots=True)
class TermGrowth:
    """How far the growth of a level is.

    Attributes:
        done, whole: sizes of terms, or parts of the configurations.
        counts: so far, of this level.
    """

    done: int
    whole: int
    counts: SearchCounts


Report: TypeAlias = Callable[[TermGrowth], None]


class Grower:
    """Grows the terms of one level after the other; a context manager, as processes end with it."""

    def __init__(self, structure: Structure, options: SearchOptions, watch: Watch) -> None:
        self._structure = structure
        self._options = options
        self._watch = watch
        self._runner = runner(options.on)

    def __enter__(self) -> Grower:
        self._runner.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        self._runner.__exit__(kind, *exception)

    def grown(
        self, database: Database, jobs: Sequence[Job], report: Report
    ) -> tuple[BlockSearch, bool]:
        """Return the terms of some jobs, and whether no limit ended their growth.

        Args:
            database: of the abstract e-graph.
            jobs: the loads that blocks may have, and their configurations.
            report: called now and then.

        Raises:
            NoSolutionError: a process ended before it was done.
        """
        arithmetic = Residues(self._options.seed)
        search = BlockSearch(database, self._structure, arithmetic, self._options.disable)
        if self._watch.is_over:
            return search, False
        configurations = sum(len(job.configurations) for job in jobs)
        most = configurations // _LEAST_CONFIGURATIONS
        slots = self._runner.slots
        parts = 1 if slots == 1 else slots * _PARTS_OF_EACH
        if min(parts, most) > 1:
            return search, self._spread(search, database, jobs, min(parts, most), report)
        for job in jobs:
            search.add(job)
        return search, self._grow_here(search, database, report)

    def _grow_here(self, search: BlockSearch, database: Database, report: Report) -> bool:
        """Grow in this process; return whether that came to its end. A size that did not is left out."""
        guard = self._watch.guard(database.interrupt, None)
        is_complete = True
        try:
            with guard.watching():
                _grow(search, self._options.max_operators, report)
        except Interrupted:
            is_complete = False
        database.resume()  # it may have been interrupted just after the last statement
        self._note(guard)
        return is_complete

    def _spread(
        self,
        search: BlockSearch,
        database: Database,
        jobs: Sequence[Job],
        parts: int,
        report: Report,
    ) -> bool:
        for job in jobs:
            search.add(job, with_tiles=False)
        rows = database.execute("FROM abstract", name="mugraph/abstract_rows")
        numbers = [range(part, len(search.configurations), parts) for part in range(parts)]
        tasks = [
            _GrowthPart(rows, self._structure, self._options, _jobs(search, mine))
            for mine in numbers
        ]
        guard = self._watch.guard(self._runner.stop, None)
        done: list[tuple[GrownTerms, bool]] = []
        # Parts of a cluster are cancelled at a stop, and give nothing; parts that ended before stay.
        with guard.watching(), suppress(CancelledPart):
            for grown in self._runner.map(_grow_part, tasks):
                done.append(grown)
                report(TermGrowth(len(done), parts, _sum([terms.counts for terms, _ in done])))
        for (terms, _), mine in zip(done, numbers, strict=False):
            search.absorb(terms, mine)
        self._note(guard)
        return len(done) == parts and all(is_complete for _, is_complete in done)

    def _note(self, guard: Guard) -> None:
        if guard.reason == "interrupted":
            self._watch.remember()


def _grow(search: BlockSearch, max_operators: int, report: Report) -> None:
    for size in range(max_operators + 1):
        report(TermGrowth(max(0, size - 1), max_operators, search.counts))
        search.grow(size, max_operators)


def _jobs(search: BlockSearch, numbers: Sequence[int]) -> list[Job]:
    """Return jobs of just these configurations, in this order."""
    jobs: list[Job] = []
    for number in numbers:
        job, configuration = search.configurations[number]
        if jobs and jobs[-1].operands is job.operands:
            jobs[-1] = replace(jobs[-1], configurations=(*jobs[-1].configurations, configuration))
        else:
            jobs.append(Job(job.operands, (configuration,)))
    return jobs


def _sum(counts: Sequence[SearchCounts]) -> SearchCounts:
    return SearchCounts(
        sum(count.configurations for count in counts),
        sum(count.candidates for count in counts),
        sum(count.terms for count in counts),
        sum(count.undefined for count in counts),
    )


# --- in the other processes ---


@dataclass(frozen=True, slots=True)
class _GrowthPart:
    """The needs of a process: the abstract e-graph's rows, and jobs."""

    abstract: Sequence[Sequence[Any]]
    structure: Structure
    options: SearchOptions
    jobs: Sequence[Job]


def _grow_part(part: _GrowthPart) -> tuple[GrownTerms, bool]:
    database = Database(process=ProcessOptions(threads=1))
    database.script("mugraph/abstract_table")
    database.append("abstract", [tuple(row) for row in part.abstract])
    search = BlockSearch(
        database, part.structure, Residues(part.options.seed), part.options.disable
    )
    for job in part.jobs:
        search.add(job)
    is_done, is_complete = threading.Event(), True
    stopper = threading.Thread(target=_interrupt, args=(database, is_done), daemon=True)
    stopper.start()
    try:
        _grow(search, part.options.max_operators, lambda growth: None)
    except Interrupted:
        is_complete = False
    is_done.set()
    stopper.join()
    database.resume()
    grown = search.grown()
    database.close()
    return grown, is_complete


def _interrupt(database: Database, is_done: threading.Event) -> None:
    """Interrupt the database when all processes are to stop."""
    while not is_done.wait(0.05):
        if is_stopping():
            database.interrupt()
            return
