"""Growing the terms of a level to their largest size, until a limit ends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relational_tensat.base.watch import Watch
from relational_tensat.egraph.database import Database, Interrupted
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import Job, SearchCounts
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import Structure


@dataclass(frozen=True, slots=True)
class TermGrowth:
    """How far the growth of a level is.

    Attributes:
        done, whole: sizes of terms.
        counts: so far, of this level.
    """

    done: int
    whole: int
    counts: SearchCounts


Report: TypeAlias = Callable[[TermGrowth], None]


def grown_terms(
    database: Database,
    structure: Structure,
    options: SearchOptions,
    watch: Watch,
    jobs: Sequence[Job],
    report: Report,
) -> tuple[BlockSearch, bool]:
    """Return the terms of some jobs, and whether no limit ended their growth: a size cut off is left out.

    Args:
        database: of the abstract e-graph.
        structure: of the program.
        options: how far they grow.
        watch: ends it.
        jobs: the loads that blocks may have, and their configurations.
        report: called after each size.
    """
    search = BlockSearch(database, structure, Residues(options.seed), options.disable)
    if watch.is_over:
        return search, False
    for job in jobs:
        search.add(job)
    guard = watch.guard(database.interrupt, None)
    is_complete, most = True, options.max_operators
    try:
        with guard.watching():
            for size in range(most + 1):
                report(TermGrowth(max(0, size - 1), most, search.counts))
                search.grow(size, most)
    except Interrupted:
        is_complete = False
    database.resume()  # it may have been interrupted just after the last statement
    if guard.reason == "interrupted":
        watch.remember()
    return search, is_complete
