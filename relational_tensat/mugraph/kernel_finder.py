"""The whole way to a kernel: search, sizes, verification of the cheapest.

While a search runs, it leaves out what cannot become cheaper than the cheapest found so far. A candidate is
made ready for verification: its exponentials stable, its operators in thread graphs. Searches for the parts
of a model share their time, and each program is searched for once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import InputError, RelationalTensatError, VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.candidate_cache import CandidateCache, SizedCandidates, candidates_of
from relational_tensat.mugraph.graph.concat_products import with_concat_products
from relational_tensat.mugraph.graph.dims import Dims, with_sizes
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation, RunningMax
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.graph.rewrites import (
    core,
    expanded,
    flat_steps,
    has_windows,
    with_thread_graphs,
    with_windows,
)
from relational_tensat.mugraph.search.block_terms import Operand
from relational_tensat.mugraph.search.kernel_search import Progress, search_kernels
from relational_tensat.mugraph.search.routes import Route, Ways
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import SearchTables
from relational_tensat.mugraph.sizes.cost_model import Traffic, graph_us, least_kernel_us
from relational_tensat.mugraph.sizes.splits import Sized, Sizing
from relational_tensat.mugraph.sizes.waves import Multiprocessors, a100, device_bytes, emitted_bytes
from relational_tensat.mugraph.verify.random_tests import first_difference
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verification import MuGraphVerification, verify_mugraph

#: Seeds of verification begin here: no search uses them.
_FRESH_SEEDS = 1_000_000


@dataclass(frozen=True, slots=True)
class VerifiedChoice:
    """The first of some graphs that passed verification.

    Attributes:
        best: it, its exponentials made stable, chains of its operators in thread graphs; None where
            nothing was found.
        verification: of ``best``; else of the last refused one.
        refused: how many before it did not pass, or could not be made stable.
        reasons: why they could not.
    """

    best: Sized | None
    verification: MuGraphVerification | None
    refused: int
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """The kernels that were found for a program.

    Attributes:
        result: of the search, with sizes; the graphs before ``best`` were refused.
        best, verification, refused, reasons: see ``VerifiedChoice``.
    """

    result: SizedCandidates
    best: Sized | None
    verification: MuGraphVerification | None
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
        device: the GPU that it shall run on; an A100 by default.
        cache: of what searches found before; without, none is used. Graphs from it are verified, too.
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
    if kept is not None:
        finding = _chosen(program, kept, options, device)
        if finding.is_settled:
            return finding
    found = searched(program, options, watch, progress, device, tables)
    if cache is not None:
        cache.keep(program, options, device, found)
    finding = _chosen(program, found, options, device)
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
) -> SizedCandidates:
    """Return what a search finds, with sizes; arguments are those of ``find_kernels``.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    so_far = CheapestSoFar(
        program, device or a100(), has_libraries=options.libraries,
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
    candidates: SizedCandidates,
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
) -> VerifiedChoice:
    """Return the first candidate that passes verification, made stable, with thread graphs.

    Its time is modelled with the maxima that make it stable, so it may not fit any more. The shared memory
    of its CUDA must fit, too.
    """
    options, device = options or SearchOptions(), device or a100()
    seed = _FRESH_SEEDS + options.seed
    verification = None
    reasons: list[str] = []
    for refused, candidate in enumerate(candidates):
        try:
            best = ready(candidate.graph, device)
        except VerificationError as error:
            reasons.append(str(error))
            continue
        verification = verify_mugraph(program, best.graph, seed)
        if verification.passed and verification.is_stable:
            return VerifiedChoice(best, verification, refused, tuple(reasons))
    return VerifiedChoice(None, verification, len(candidates), tuple(reasons))


#: No search takes more than this part of the time for all.
_LARGEST_SHARE = 0.25


class UnfitError(VerificationError):
    """A program is one kernel, but of no sizes that fit, so that several may be better."""


@dataclass(frozen=True, slots=True)
class SearchEffort:
    """How far a search for a part of a model goes.

    Attributes:
        kernels: of a μGraph at most.
        more_operators: of a block, beyond the program's: a sum over a loop takes one more. (A sum over
            several variables is several operators of a block.)
    """

    kernels: int
    more_operators: int


class KernelSearcher:
    """Searches that share their time, and what they have found.

    Args:
        options: of all searches; the time limit is for all of them together.
        watch: ends them.
        cache: of what searches found before; without, none is used.
    """

    def __init__(self, options: SearchOptions, watch: Watch, cache: CandidateCache | None) -> None:
        self._options = options
        self._watch = watch
        self._cache = cache
        self._known: dict[tuple[str, str, SearchEffort], MuGraph | RelationalTensatError] = {}

    def search(self, program: MuGraph, device: Multiprocessors, effort: SearchEffort) -> MuGraph:
        """Return the cheapest verified μGraph that a search finds.

        Raises:
            UnfitError: all that it finds are too large, or could not be made stable.
            RelationalTensatError: it finds none.
        """
        content = device.dtype, content_hash(program), effort
        if content not in self._known:
            try:
                self._known[content] = self._search(program, device, effort)
            except RelationalTensatError as error:
                self._known[content] = error
        known = self._known[content]
        if isinstance(known, RelationalTensatError):
            raise known
        return known

    def _search(self, program: MuGraph, device: Multiprocessors, effort: SearchEffort) -> MuGraph:
        limit_s = self._options.time_limit_s
        if limit_s is not None:
            limit_s = min(self._watch.seconds_left, _LARGEST_SHARE * limit_s)
        options = replace(
            self._options,
            max_operators=_operators_of_block(program) + effort.more_operators,
            max_kernels=effort.kernels,
            time_limit_s=limit_s,
        )
        finding = find_kernels(program, options, self._watch, device=device, cache=self._cache)
        if finding.best is not None:
            return finding.best.graph
        if finding.result.routes:
            reasons = "; ".join(dict.fromkeys(finding.reasons))
            raise UnfitError(reasons or "no sizes of it fit a block")
        raise VerificationError(
            "none found" if finding.result.is_complete else "none found in the time"
        )


def _operators_of_block(program: MuGraph) -> int:
    """Return how many operators a block has that does what a program does, as it does it."""
    reduced = (
        names(step.attrs, "over") if step.op in ("sum", "matmul") else ()
        for step in program.operators
    )
    return sum(max(len(over), 1) for over in reduced)


def ready(candidate: MuGraph, device: Multiprocessors) -> Sized:
    """Return a candidate made ready, with its time then: maxima take some, too.

    Args:
        candidate: as a search found it, with sizes.
        device: the GPU that it shall run on.

    Raises:
        VerificationError: it cannot be made stable, or does not fit a block or the device.
    """
    graph = made_ready(candidate)
    cost_us = graph_us(graph, device)
    if not math.isfinite(cost_us) or emitted_bytes(graph, device.dtype) > device.shared_bytes:
        raise VerificationError(f"{graph.name}: its tensors, with maxima, do not fit shared memory")
    if 0 < device.profile.memory_bytes < device_bytes(graph, device.element_bytes):
        raise VerificationError(
            f"{graph.name}: its tensors do not fit {device.profile.name}'s memory"
        )
    return Sized(graph, cost_us)


def made_ready(graph: MuGraph) -> MuGraph:
    """Return a μGraph with maxima, unless it has some already, and with thread graphs.

    Products of concatenations become products of their parts.

    Raises:
        VerificationError: it cannot be made stable.
    """
    graph = with_concat_products(graph)
    steps = [step for kernel in graph.kernels for step in flat_steps(kernel.block.steps)]
    has_maxima = any(
        isinstance(step, RunningMax) or (isinstance(step, Operation) and step.op == "max")
        for step in steps
    )
    return with_thread_graphs(graph if has_maxima else stabilized(graph))


#: Times that differ by less are equal: which of two such graphs is found does not depend on their order.
_RELATIVE = 1e-9
#: Into so few parts at least a variable is split whose partial results are stored.
_FEWEST_PARTS = 2


class CheapestSoFar:
    """The graphs of the ways that a search has found, at their best sizes; the search's ``Bound``.

    Graphs that cost more than the cheapest one that could be made ready are left out. (Random tests refuse
    a find of a search only where its own tests were in error, so this one is most likely the result. Where
    it is
    not, the rest is needed, too: ``complete_to_us``.)

    Args:
        program: the program that is searched for.
        device: the GPU that it shall run on.
        has_libraries: whether operators of libraries may take kernels' places.
        bounds: whether anything is left out.
    """

    def __init__(
        self,
        program: MuGraph,
        device: Multiprocessors,
        *,
        has_libraries: bool = True,
        bounds: bool = True,
    ) -> None:
        self._device = device
        self._bounds = bounds
        self._sizing = Sizing(program, device, has_libraries=has_libraries)
        self._given = {d.variable: d.size for dims in program.inputs.values() for d in dims}
        self._cheapest_us = math.inf
        self._found: dict[int, tuple[Route, list[Sized]]] = {}

    @property
    def complete_to_us(self) -> float:
        """Up to this time nothing was left out."""
        return self._cheapest_us * (1 + _RELATIVE)

    def graphs(self, routes: Iterable[Route]) -> list[Sized]:
        """Return the graphs of routes that were noted, cheapest first."""
        every = (made for route in routes for made in self._found[id(route)][1])
        return sorted(every, key=lambda made: made.cost_us)

    def near(self, routes: Iterable[Route], within: float, most: int) -> list[Sized]:
        """Return graphs of routes at the sizes that come next, too, cheapest first.

        Args:
            within: how many times as long as the cheapest they take at most.
            most: of each way to end a route, so many.
        """
        below_us = within * self._cheapest_us
        every = (made for route in routes for made in self._sizing.sized(route, below_us, most))
        return sorted(every, key=lambda made: made.cost_us)

    def note(self, route: Route) -> None:
        """Choose the sizes of a route's graphs."""
        made = self._sizing.sized(route, self.complete_to_us)
        self._found[id(route)] = route, made
        for graph in made if self._bounds else ():
            if graph.cost_us >= self._cheapest_us:
                break
            if self._is_ready(graph):
                self._cheapest_us = graph.cost_us

    def least_kernel_us(self, tensors: Iterable[Operand]) -> float:
        traffic = (Traffic(self._least_dims(t.dims), t.is_wide, t.is_condition) for t in tensors)
        return least_kernel_us(traffic, self._device)

    def least_before_us(self, ways: Ways) -> float:
        partials = (partial for way in ways for partial in self._sizing.partials(way)[:1])
        return min((partial.cost_us for partial in partials), default=math.inf)

    def is_over(self, least_us: float) -> bool:
        return self._bounds and least_us > self.complete_to_us

    def _is_ready(self, made: Sized) -> bool:
        try:
            ready(made.graph, self._device)
        except VerificationError:
            return False
        return True

    def _least_dims(self, dims: Dims) -> Dims:
        sizes: Mapping[str, int] = {
            dim.variable: self._given.get(dim.variable, _FEWEST_PARTS) for dim in dims
        }
        return with_sizes(dims, sizes)
