"""The whole way: search, sizes, verification of the cheapest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relational_tensat.base.errors import VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.thread_graphs import with_thread_graphs
from relational_tensat.mugraph.search.kernel_search import Progress, SearchResult, search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizing.choosing_sizes import Sized, sized
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verifying_mugraphs import Verification, verify_mugraph

#: Seeds of verification begin here: no search uses them.
_FRESH_SEEDS = 1_000_000


@dataclass(frozen=True, slots=True)
class Choice:
    """The first of some graphs that passed verification.

    Attributes:
        best: it, its exponentials made stable, chains of its operators in thread graphs; None where there
            is none.
        verification: of ``best``; of the last refused one where there is none.
        refused: how many before it did not pass, or could not be made stable.
        reasons: why they could not.
    """

    best: Sized | None
    verification: Verification | None
    refused: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for a program.

    Attributes:
        result: of the search.
        candidates: graphs with sizes that fit a block, cheapest first; those before ``best`` were refused.
        best, verification, refused, reasons: see ``Choice``.
    """

    result: SearchResult
    candidates: tuple[Sized, ...]
    best: Sized | None
    verification: Verification | None
    refused: int
    reasons: tuple[str, ...] = ()


def find_kernels(
    program: MuGraph,
    options: SearchOptions | None = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
    device: Multiprocessors | None = None,
) -> Finding:
    """Search kernels that compute a program, and verify the cheapest.

    Args:
        program: of operators of libraries only.
        options: how far to go.
        watch: ends the search with the best so far.
        progress: of the search.
        device: what it shall run on; an A100 by default.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    options = options or SearchOptions()
    result = search_kernels(program, options, watch, progress)
    candidates = sized_candidates(result, device)
    choice = first_verified(program, candidates, options)
    return Finding(
        result, candidates, choice.best, choice.verification, choice.refused, choice.reasons
    )


def sized_candidates(
    result: SearchResult, device: Multiprocessors | None = None
) -> tuple[Sized, ...]:
    """Return the graphs of all routes at the sizes that are best on a device, cheapest first."""
    candidates = [made for route in result.routes for made in sized(route, device)]
    return tuple(sorted(candidates, key=lambda made: made.cost_us))


def first_verified(
    program: MuGraph, candidates: Sequence[Sized], options: SearchOptions | None = None
) -> Choice:
    """Return the first candidate that passes verification, made stable, with thread graphs."""
    options = options or SearchOptions()
    seed = _FRESH_SEEDS + options.seed
    verification = None
    reasons: list[str] = []
    for refused, candidate in enumerate(candidates):
        try:
            raw = candidate.graph
            graph = with_thread_graphs(raw if options.raw_exp else stabilized(raw))
        except VerificationError as error:
            reasons.append(str(error))
            continue
        verification = verify_mugraph(program, graph, seed)
        if verification.passed and (verification.is_stable or options.raw_exp):
            best = Sized(graph, candidate.cost_us)
            return Choice(best, verification, refused, tuple(reasons))
    return Choice(None, verification, len(candidates), tuple(reasons))
