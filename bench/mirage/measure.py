"""One search: what is found, how large it was, how long it took."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field
from typing import Any

from bench.mirage.cases import Case
from relational_tensat.mugraph.candidate_cache import SizedCandidates
from relational_tensat.mugraph.graph.mugraph_json import encoded
from relational_tensat.mugraph.kernel_finder import first_verified, searched
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.cost_model import graph_us
from relational_tensat.mugraph.sizes.waves import a100


@dataclass(frozen=True, slots=True)
class SearchRun:
    """How large a search was and how long it took.

    Attributes:
        max_kernels, max_operators, disabled: its options.
        abstract_e_nodes, abstract_e_classes: of the abstract e-graph.
        configurations, candidates, terms: of all levels together.
        hits: terms that are the program's result.
        routes: ways of computing the program that were found.
        is_complete: whether no limit of time ended it.
        processes: that it may be spread over.
        search_cpu_s, search_wall_s: CPU seconds of all processes, and wall seconds, with sizes chosen.
        is_left_out: whether it was not made, as one with fewer operators had met the limit of time.
    """

    case: str
    max_kernels: int
    max_operators: int
    disabled: tuple[str, ...]
    abstract_e_nodes: int
    abstract_e_classes: int
    configurations: int
    candidates: int
    terms: int
    hits: int
    routes: int
    is_complete: bool
    search_cpu_s: float
    processes: int = 1
    search_wall_s: float = 0.0
    is_left_out: bool = False


@dataclass(frozen=True, slots=True)
class MirageRun:
    """What came of a search.

    Attributes:
        search: itself.
        kernels: of the best μGraph, operators of libraries among them; 0 where none was found.
        bounded_tests: random tests at small sizes, where Theorem 4 bounds their odds of an error; else 0.
        other_tests: random tests of which no theorem says anything, of all sizes.
        entry_tests: random tests of a few entries, where the whole result is too large.
        cpu_s: of search, sizes and verification.
        library_us, best_us: modelled, with a kernel for each operator, and of the best.
        mugraph: the best, as JSON; None where none was found.
    """

    search: SearchRun
    published: str
    published_search: str
    kernels: int
    bounded_tests: int
    other_tests: int
    cpu_s: float
    library_us: float
    best_us: float
    mugraph: dict[str, Any] | None = field(repr=False)
    entry_tests: int = 0

    @property
    def ratio(self) -> float:
        """How often the best fits into the library's time, modelled; NaN where none was found."""
        return self.library_us / self.best_us


def cpu_s() -> float:
    """Return the CPU seconds of this process and of those that it began and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def measure(case: Case, options: SearchOptions) -> MirageRun:
    """Search the kernels of a benchmark, choose their sizes, and verify the cheapest."""
    program = case.build()
    start_s = cpu_s()
    search, found = _searched(case, options)
    choice = first_verified(program, found.graphs, options)
    taken_s = cpu_s() - start_s
    best, passed = choice.best, choice.verification
    bounded = passed.small_tests if passed and passed.error else 0
    tests = passed.small_tests + passed.full_tests if passed else 0
    return MirageRun(
        search,
        case.published,
        case.published_search,
        len(best.graph.steps) if best else 0,
        bounded,
        tests - bounded,
        taken_s,
        graph_us(program, a100()),
        best.cost_us if best else math.nan,
        encoded(best.graph) if best else None,
        passed.entry_tests if passed else 0,
    )


def measure_search(case: Case, options: SearchOptions) -> SearchRun:
    """Search the kernels of a benchmark, choose their sizes, and no more."""
    return _searched(case, options)[0]


def left_out(case: Case, options: SearchOptions) -> SearchRun:
    """Return the row of a search that is not made: one with fewer operators met the limit of time."""
    limits = options.max_kernels, options.max_operators, options.disable
    return SearchRun(
        case.name, *limits, 0, 0, 0, 0, 0, 0, 0, is_complete=False, search_cpu_s=0.0,
        processes=_processes(options), is_left_out=True,
    )  # fmt: skip


def _searched(case: Case, options: SearchOptions) -> tuple[SearchRun, SizedCandidates]:
    start_s, begun_s = cpu_s(), time.monotonic()
    result = searched(case.build(), options)
    taken_s, wall_s = cpu_s() - start_s, time.monotonic() - begun_s
    levels = result.levels
    run = SearchRun(
        case.name,
        options.max_kernels,
        options.max_operators,
        options.disable,
        result.abstract_e_nodes,
        result.abstract_e_classes,
        sum(level.configurations for level in levels),
        sum(level.candidates for level in levels),
        sum(level.terms for level in levels),
        sum(level.hits for level in levels),
        result.routes,
        result.is_complete,
        taken_s,
        _processes(options),
        wall_s,
    )
    return run, result


def _processes(options: SearchOptions) -> int:
    return int(options.on.partition(":")[2] or 1)
