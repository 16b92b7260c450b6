"""The whole way: search, sizes, verification of the cheapest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.candidate_cache import CandidateCache
from relational_tensat.mugraph.candidates import Candidates, candidates_of, with_more
from relational_tensat.mugraph.cheapest_so_far import CheapestSoFar
from relational_tensat.mugraph.graph.concat_products import with_concat_products
from relational_tensat.mugraph.graph.cores import core, has_windows, with_windows
from relational_tensat.mugraph.graph.expanded import expanded
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.ready_candidates import ready
from relational_tensat.mugraph.search.kernel_search import Progress, search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.search_tables import SearchTables
from relational_tensat.mugraph.sizing.choosing_sizes import Sized
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100
from relational_tensat.mugraph.verify.random_tests import first_difference
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
        result: of the search, with sizes; the graphs before ``best`` were refused.
        best, verification, refused, reasons: see ``Choice``.
    """

    result: Candidates
    best: Sized | None
    verification: Verification | None
    refused: int
    reasons: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether nothing that was left out can be cheaper than the best."""
        found, limit_us = self.result, self.result.complete_to_us
        if self.best is None:
            return limit_us == math.inf
        return found.graphs[self.refused].cost_us <= limit_us


def find_kernels(
    program: MuGraph,
    options: SearchOptions | None = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
    device: Multiprocessors | None = None,
    cache: CandidateCache | None = None,
    tables: SearchTables | None = None,
) -> Finding:
    """Search kernels that compute a program, and verify the cheapest.

    Windows of inputs are no matter of the search: they are what its loads take of them.

    Args:
        program: of operators of libraries only.
        options: how far to go.
        watch: ends the search with the best so far.
        progress: of the search.
        device: what it shall run on; an A100 by default.
        cache: of what searches found before, and of what was imported; without, none is used. What is
            from it is verified, too.
        tables: keep those of the search, and what was found; that a search was kept does not count then.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    options = options or SearchOptions()
    plain = expanded(with_concat_products(program))
    if plain is not program:
        difference = first_difference(program, plain, options.seed)
        if difference is not None:
            raise InputError(
                f"{program.name}: parts of its operators compute something else: {difference}"
            )
        return find_kernels(plain, options, watch, progress, device, cache, tables)
    if has_windows(program):
        alone = replace(options, libraries=False)  # these read whole tensors
        own = find_kernels(core(program), alone, watch, progress, device, cache, tables)
        return _with_windows(own, program)
    kept = cache.find(program, options, device) if cache and tables is None else None
    imported = [
        graph
        for graph in (cache.imported(program) if cache else ())
        if options.libraries or len(graph.kernels) == len(graph.steps)
    ]
    if kept is not None:
        finding = _chosen(program, with_more(kept, imported, device), options, device)
        if finding.is_settled:
            return finding
    found = searched(program, options, watch, progress, device, tables)
    if cache is not None:
        cache.keep(program, options, device, found)
    finding = _chosen(program, with_more(found, imported, device), options, device)
    if not finding.is_settled and found.is_complete:
        if tables is not None:
            tables.begin_again()
        every = replace(options, disable=(*options.disable, "bounds"))
        return find_kernels(program, every, watch, progress, device, cache, tables)
    if tables is not None and finding.best is not None:
        tables.note(finding.best.graph, finding.best.cost_us)
    return finding


def searched(
    program: MuGraph,
    options: SearchOptions,
    watch: Watch | None = None,
    progress: Progress | None = None,
    device: Multiprocessors | None = None,
    tables: SearchTables | None = None,
) -> Candidates:
    """Return what a search finds, with sizes; arguments are those of ``find_kernels``.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    so_far = CheapestSoFar(
        program, device or a100(), has_libraries=options.libraries, raw_exp=options.raw_exp,
        bounds="bounds" not in options.disable,
    )  # fmt: skip
    result = search_kernels(program, options, watch, progress, tables, so_far)
    return candidates_of(result, so_far.graphs(result.routes), so_far.complete_to_us)


def _with_windows(finding: Finding, program: MuGraph) -> Finding:
    """Return what was found for a program's core as it is for the program."""
    best = finding.best
    if best is None:
        return finding
    return replace(finding, best=replace(best, graph=with_windows(best.graph, program)))


def _chosen(
    program: MuGraph,
    candidates: Candidates,
    options: SearchOptions,
    device: Multiprocessors | None,
) -> Finding:
    choice = first_verified(program, candidates.graphs, options, device)
    return Finding(candidates, choice.best, choice.verification, choice.refused, choice.reasons)


def first_verified(
    program: MuGraph,
    candidates: Sequence[Sized],
    options: SearchOptions | None = None,
    device: Multiprocessors | None = None,
) -> Choice:
    """Return the first candidate that passes verification, made stable, with thread graphs.

    Its time is modelled with the maxima that make it stable, so it may not fit any more. What its CUDA
    has in shared memory must fit, too.
    """
    options, device = options or SearchOptions(), device or a100()
    seed = _FRESH_SEEDS + options.seed
    verification = None
    reasons: list[str] = []
    for refused, candidate in enumerate(candidates):
        try:
            best = ready(candidate.graph, device, raw_exp=options.raw_exp)
        except VerificationError as error:
            reasons.append(str(error))
            continue
        verification = verify_mugraph(program, best.graph, seed)
        if verification.passed and (verification.is_stable or options.raw_exp):
            return Choice(best, verification, refused, tuple(reasons))
    return Choice(None, verification, len(candidates), tuple(reasons))
