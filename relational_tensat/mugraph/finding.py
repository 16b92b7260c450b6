"""The whole way: search, sizes, verification of the cheapest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.candidate_cache import CandidateCache
from relational_tensat.mugraph.candidates import Candidates, candidates_of, with_more
from relational_tensat.mugraph.graph.cores import core, has_windows, with_windows
from relational_tensat.mugraph.graph.expanded import expanded
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation, RunningMax
from relational_tensat.mugraph.graph.thread_graphs import with_thread_graphs
from relational_tensat.mugraph.search.kernel_search import Progress, search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.search_tables import SearchTables
from relational_tensat.mugraph.sizing.choosing_sizes import Sized
from relational_tensat.mugraph.sizing.modelled import graph_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors, a100
from relational_tensat.mugraph.sizing.shared_memory import emitted_bytes
from relational_tensat.mugraph.verify.random_tests import first_difference
from relational_tensat.mugraph.verify.scaling_rows import flat_steps
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
        result: of the search, with sizes; the graphs before ``best`` were refused.
        best, verification, refused, reasons: see ``Choice``.
    """

    result: Candidates
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
    plain = expanded(program)
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
        if finding.best is not None or kept.fitting <= len(kept.graphs):
            return finding
    result = search_kernels(program, options, watch, progress, tables)
    found = candidates_of(result, device, libraries=options.libraries)
    if cache is not None:
        cache.keep(program, options, device, found)
    finding = _chosen(program, with_more(found, imported, device), options, device)
    if tables is not None and finding.best is not None:
        tables.note(finding.best.graph, finding.best.cost_us)
    return finding


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
            graph = made_ready(candidate.graph, raw_exp=options.raw_exp)
        except VerificationError as error:
            reasons.append(str(error))
            continue
        cost_us = graph_us(graph, device)
        if not math.isfinite(cost_us) or emitted_bytes(graph, device.dtype) > device.shared_bytes:
            reasons.append(f"{graph.name}: its tensors, with maxima, do not fit shared memory")
            continue
        verification = verify_mugraph(program, graph, seed)
        if verification.passed and (verification.is_stable or options.raw_exp):
            best = Sized(graph, cost_us)
            return Choice(best, verification, refused, tuple(reasons))
    return Choice(None, verification, len(candidates), tuple(reasons))


def made_ready(graph: MuGraph, *, raw_exp: bool = False) -> MuGraph:
    """Return a μGraph with maxima, unless it has some already, and with thread graphs.

    Args:
        graph: the μGraph.
        raw_exp: without maxima.

    Raises:
        VerificationError: it cannot be made stable.
    """
    steps = [step for kernel in graph.kernels for step in flat_steps(kernel.block.steps)]
    has_maxima = any(
        isinstance(step, RunningMax) or (isinstance(step, Operation) and step.op == "max")
        for step in steps
    )
    return with_thread_graphs(graph if raw_exp or has_maxima else stabilized(graph))
