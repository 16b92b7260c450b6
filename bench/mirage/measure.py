"""One search: what is found, how large it was, how long it took."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.mirage.cases import Case
from relational_tensat.mugraph.finding import find_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizing.libraries import library_us


@dataclass(frozen=True, slots=True)
class MirageRun:
    """What came of a search.

    Attributes:
        kernels: of the best μGraph; 0 where none was found.
        configurations, candidates, terms: of all levels together.
        routes: ways of computing the program that were found.
        verified: whether the best passed all tests.
        bounded_tests: random tests at small sizes, where Theorem 4 bounds their odds of an error; else 0.
        cpu_s: of search, sizes and verification.
        library_us, best_us: modelled, with a kernel for each operator, and of the best.
    """

    case: str
    max_operators: int
    disabled: tuple[str, ...]
    kernels: int
    configurations: int
    candidates: int
    terms: int
    routes: int
    is_complete: bool
    verified: bool
    bounded_tests: int
    cpu_s: float
    library_us: float
    best_us: float
    published: str


def measure(case: Case, options: SearchOptions) -> MirageRun:
    """Search the kernels of a benchmark."""
    program = case.build()
    start_s = time.process_time()
    finding = find_kernels(program, options)
    cpu_s = time.process_time() - start_s
    levels, best, verification = finding.result.levels, finding.best, finding.verification
    bounded = verification.small_tests if verification and verification.error else 0
    return MirageRun(
        case.name,
        options.max_operators,
        options.disable,
        len(best.graph.kernels) if best else 0,
        sum(level.configurations for level in levels),
        sum(level.candidates for level in levels),
        sum(level.terms for level in levels),
        len(finding.result.routes),
        finding.result.is_complete,
        best is not None,
        bounded,
        cpu_s,
        library_us(program),
        best.cost_us if best else float("nan"),
        case.published,
    )
