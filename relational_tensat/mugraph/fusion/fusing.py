"""Kernels of a model's own: functions and reductions by rows, regions with products by search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from relational_tensat.base.errors import RelationalTensatError, VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostSource
from relational_tensat.mugraph.candidate_cache import CandidateCache
from relational_tensat.mugraph.fusion.candidates import (
    Candidate,
    chain_candidates,
    pattern_hash,
    region_candidates,
)
from relational_tensat.mugraph.fusion.chain_program import row_kernel
from relational_tensat.mugraph.fusion.kernel_rule import kernel_rule
from relational_tensat.mugraph.fusion.nodes_check import computes_nodes
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel, Shape
from relational_tensat.mugraph.fusion.planning import Key, Plan
from relational_tensat.mugraph.fusion.region_report import RegionReport
from relational_tensat.mugraph.fusion.seeking import Effort, Seeker, UnfitError
from relational_tensat.mugraph.fusion.worth import Worth
from relational_tensat.mugraph.graph.cores import core, with_windows
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Kernel, MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.regions.region_row import RegionRow
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verifying_mugraphs import verify_mugraph
from relational_tensat.rules.targets.known import know_kernels
from relational_tensat.tensor import Graph, TensorType

_SEED = 2_000_000
#: A search takes so many times as long with one more operator.
_GROWTH = 1.25
#: A search is worth it where the whole graph may become cheaper by this part.
_LEAST_GAIN = 1e-3
_NO_GAIN = "whatever its kernel takes, other kernels are modelled to make the graph as cheap"
#: A search for so few operators a value takes half a second: queries, keys and values of one input, say.
_FEW_EACH = 2
#: Parts with more values come after μGraphs of several kernels.
_PAIRS = 2
_NO_TIME = "the time was over, or someone ended the search, before its turn"


Report: TypeAlias = Callable[[RegionReport], None]


@dataclass(frozen=True, slots=True)
class Sought:
    """What a search for a model's own kernels came to.

    Attributes:
        kernels: all that were made or found, each verified.
        parts: of the model, that it was done with; one for which several kernels were sought, too, is two.
        total: how many there are.
        regions: what became of all parts, those that were left out, too.
    """

    kernels: tuple[OwnKernel, ...]
    parts: int
    total: int
    regions: tuple[RegionRow, ...]


def own_kernels(
    graphs: Sequence[Graph],
    costs: CostSource,
    options: SearchOptions,
    watch: Watch | None = None,
    report: Report | None = None,
    cache: CandidateCache | None = None,
) -> Sought:
    """Return kernels for the parts of a model, each verified; which are used is for extraction to choose.

    Parts overlap. Of a recurring one there is one kernel, which its rule finds everywhere.

    Args:
        graphs: the model, and others that compute the same.
        costs: of operators. Where these are no profile of a GPU, there are chains only; where they are
            measured on this processor, so are kernels, as C.
        options: of the search for regions with products; its time limit is for all of them together. Where
            several kernels may be faster than the one that is found, a μGraph of them is sought, too, as
            one e-node: FlashDecoding, say.
        watch: ends the search with what was found so far.
        report: called for each part.
        cache: of what searches found before; without, none is used.
    """
    know_kernels()
    watch = watch or Watch()
    if options.time_limit_s is not None:
        watch = watch.within(options.time_limit_s)
    fusing = _Fusing(Worth(costs), Seeker(options, watch, cache), options, watch)
    return fusing.run(graphs, report or _silent)


class _Fusing:
    def __init__(self, worth: Worth, seeker: Seeker, options: SearchOptions, watch: Watch) -> None:
        self._worth = worth
        self._seeker = seeker
        self._options = options
        self._watch = watch
        self._kernels: dict[str, OwnKernel] = {}
        self._rows: list[RegionRow] = []
        self._known_us: dict[Key, float] = {}
        self._unfit: set[str] = set()
        self._done = self._total = 0

    def run(self, graphs: Sequence[Graph], report: Report) -> Sought:
        self._model = graphs[0]
        candidates = self._candidates(graphs)
        alone = [pattern for pattern, c in candidates.items() if not c.has_products]
        self._all({(pattern, 1): candidates[pattern] for pattern in alone}, report)
        if self._worth.profile is not None:
            self._planned(graphs, candidates, report)
        kernels, rows = tuple(self._kernels.values()), tuple(dict.fromkeys(self._rows))
        return Sought(kernels, self._done, self._total, rows)

    def _planned(
        self, graphs: Sequence[Graph], candidates: Mapping[str, Candidate], report: Report
    ) -> None:
        """Seek kernels for parts with products as long as one could make a graph cheaper."""
        plans = [
            Plan(
                graph,
                partial(self._worth.operator_us, graph=graph),
                [(pattern, c) for pattern, c in self._places if c.graph is graph],
            )
            for graph in graphs
        ]
        few, many = (
            {
                (pattern, 1): self._worth.least_us(candidate)
                for pattern, candidate in candidates.items()
                if candidate.has_products and (_order(candidate) > _PAIRS) == is_more
            }
            for is_more in (False, True)
        )
        self._settle(plans, few, candidates, report)
        self._settle(plans, self._several_us(candidates), candidates, report)
        self._settle(plans, many, candidates, report)

    def _settle(
        self,
        plans: Sequence[Plan],
        least_us: dict[Key, float],
        candidates: Mapping[str, Candidate],
        report: Report,
    ) -> None:
        """Seek kernels until no graph could be cheaper by one of those that are left."""
        is_settled = False
        while not is_settled and not self._watch.is_over:
            keys = {key for plan in plans for key in self._wanted(plan, least_us)}
            wanted = {key: candidates[key[0]] for key in sorted(keys)}
            self._all(dict(sorted(wanted.items(), key=self._rank)), report)
            for key in wanted:
                del least_us[key]
            is_settled = not wanted
        for pattern, _ in least_us:
            fate, reason = ("no gain", _NO_GAIN) if is_settled else ("no time", _NO_TIME)
            self._rows.append(self._row(candidates[pattern], fate, reason))
        self._total += 0 if is_settled else len(least_us)

    def _wanted(self, plan: Plan, least_us: Mapping[Key, float]) -> frozenset[Key]:
        """Return the kernels not sought yet that a graph would have which is cheaper than all known ones.

        Args:
            plan: the graph.
            least_us: what these kernels take at least.
        """
        hoped = plan.cheapest({**self._known_us, **least_us})
        known = plan.cheapest(self._known_us)
        is_cheaper = hoped.cost_us < (1 - _LEAST_GAIN) * known.cost_us
        return hoped.keys & least_us.keys() if is_cheaper else frozenset()

    def _several_us(self, candidates: Mapping[str, Candidate]) -> dict[Key, float]:
        """Return what several kernels take at least for parts whose one takes longer, or does not fit.

        Where no search finds one kernel, two that parts of it become are to be had already.
        """
        found: dict[Key, float] = {}
        if self._options.max_kernels == 1:
            return found
        for pattern, candidate in candidates.items():
            one_us = math.inf if pattern in self._unfit else self._known_us.get((pattern, 1), 0.0)
            now_us = min(one_us, self._worth.operators_us(candidate))
            least_us = self._worth.least_us(candidate, kernels=2)
            # Between kernels all is narrow.
            is_fit = candidate.has_products and not candidate.is_cast
            if is_fit and least_us < now_us:
                found[pattern, 2] = least_us
        return found

    def _all(self, wanted: Mapping[Key, Candidate], report: Report) -> None:
        """Seek kernels for parts."""
        self._total += len(wanted)
        for place, (key, candidate) in enumerate(wanted.items()):
            takes_time = candidate.has_products or self._worth.is_measured
            if self._watch.is_over and takes_time:
                late = list(wanted.values())[place:]
                self._rows += [self._row(each, "no time", _NO_TIME) for each in late]
                break
            kernel_us, reason, mugraph = None, "", ""
            try:
                kernel = self._kernel(candidate, self._effort(key))
                kernel_us, mugraph = kernel.cost_us, kernel.key
                self._known_us[key] = kernel_us or 0.0
            except RelationalTensatError as error:
                reason = str(error)
                if isinstance(error, UnfitError):
                    self._unfit.add(key[0])
            self._done += 1
            row = replace(
                self._row(candidate, "kernel" if mugraph else "none found", reason),
                kernel_us=kernel_us, mugraph=mugraph,
            )  # fmt: skip
            self._rows.append(row)
            report(
                RegionReport(
                    self._done, self._total, candidate.outputs, row.operators,
                    self._worth.operators_us(candidate), kernel_us, reason,
                )
            )  # fmt: skip

    def _effort(self, key: Key) -> Effort:
        _, kernels = key
        if kernels == 1:
            return Effort(kernels=1, more_operators=1)
        return Effort(kernels=self._options.max_kernels, more_operators=2)

    def _row(self, candidate: Candidate, fate: str, reason: str) -> RegionRow:
        operators = tuple(step.op for step in candidate.program.operators)
        cost_us = self._worth.operators_us(candidate)
        source = "model" if candidate.graph is self._model else "cheapest"
        return RegionRow(source, candidate.outputs, operators, fate, reason, cost_us)

    def _candidates(self, graphs: Sequence[Graph]) -> dict[str, Candidate]:
        """Return parts of graphs by pattern, equal ones once, in their order; first each time what may save
        most for its time."""
        leave, most = self._rows.append, self._options.max_operators
        found: list[Candidate] = []
        sources = [("cheapest" if place else "model", graph) for place, graph in enumerate(graphs)]
        for source, graph in sources:
            found += chain_candidates(graph, leave, source)
        for source, graph in sources if self._worth.profile is not None else ():
            found += region_candidates(graph, most, leave, source)
        self._places = [(pattern_hash(candidate), candidate) for candidate in found]
        distinct = {}
        for pattern, candidate in dict(self._places).items():
            if self._saving_us(candidate) > 0:
                distinct[pattern] = candidate
                continue
            least = self._worth.least_us(candidate)
            reason = f"a kernel takes {least:.2f} µs at least, modelled"
            self._rows.append(self._row(candidate, "no gain", reason))
        return dict(sorted(distinct.items(), key=self._rank))

    def _rank(self, part: tuple[object, Candidate]) -> tuple[int, float]:
        """Return where a part with its key comes among others."""
        _, candidate = part
        for_its_time = self._saving_us(candidate) / _GROWTH ** len(candidate.program.operators)
        return _order(candidate), -for_its_time

    def _saving_us(self, candidate: Candidate) -> float:
        """Return what a kernel might save at best."""
        return self._worth.operators_us(candidate) - self._worth.least_us(candidate)

    def _kernel(self, candidate: Candidate, effort: Effort) -> OwnKernel:
        """Return the kernel of a candidate, with a rule for it.

        Raises:
            RelationalTensatError: there is none; says why.
        """
        if not computes_nodes(candidate, _SEED):
            raise VerificationError("its program computes something else")
        device = self._worth.device(candidate)
        if candidate.has_products:
            assert device is not None
            graph = self._seeker.seek(candidate.program, device, effort)
        else:
            graph = _by_rows(candidate.program)
        graph = _stored_in_order(graph, candidate.orders)
        cost_us = self._worth.kernel_us(candidate, graph)
        if cost_us is not None and not math.isfinite(cost_us):
            raise UnfitError("a block of it is too large")
        kernel = self._with_rule(candidate, graph, cost_us)
        self._kernels[kernel.key] = kernel
        return kernel

    def _with_rule(self, candidate: Candidate, graph: MuGraph, cost_us: float | None) -> OwnKernel:
        """Return a kernel with one more rule, unless it has this one already."""
        key = f"k{content_hash(graph)}"
        known = self._kernels.get(key)
        rules = known.rules if known else ()
        name = f"fused-{key}-{len(rules) + 1}" if rules else f"fused-{key}"
        rule = kernel_rule(candidate, key, name)
        if any(replace(rule, name=other.name) == other for other in rules):
            assert known is not None
            return known
        return OwnKernel(
            key, graph, (*rules, rule), candidate.dtype,
            tuple(_shape(candidate, name) for name in candidate.inputs),
            tuple(_shape(candidate, name) for name in candidate.outputs), cost_us,
        )  # fmt: skip


def _order(candidate: Candidate) -> int:
    """Return when a kernel for a part is sought: nothing is searched where there are no products; next come
    those with one value, and values alike of few operators each; then those with two, three and more."""
    if not candidate.has_products:
        return 0
    steps, values = candidate.program.operators, candidate.outputs
    last = {step.op for step in steps if step.output in candidate.program.outputs}
    return 1 if len(last) == 1 and len(steps) <= _FEW_EACH * len(values) else len(values)


def _shape(candidate: Candidate, name: str) -> Shape:
    kind = candidate.graph.types[name]
    assert isinstance(kind, TensorType)
    return kind.shape


def _by_rows(program: MuGraph) -> MuGraph:
    """Return the verified kernel that computes a program row by row.

    Raises:
        RelationalTensatError: there is none, or it is wrong.
    """
    graph = with_windows(stabilized(row_kernel(core(program))), program)
    verification = verify_mugraph(program, graph, _SEED)
    if not verification.passed or not verification.is_stable:
        raise VerificationError("the kernel computes something else")
    return graph


def _stored_in_order(graph: MuGraph, orders: Sequence[tuple[str, ...]]) -> MuGraph:
    """Return a μGraph whose results lie in memory as the model has them."""
    order_of = dict(zip(graph.outputs, orders, strict=True))
    steps = tuple(
        replace(step, block=_with_order(step.block, order_of)) if isinstance(step, Kernel) else step
        for step in graph.steps
    )
    return replace(graph, steps=steps)


def _with_order(block: BlockGraph, order_of: Mapping[str, tuple[str, ...]]) -> BlockGraph:
    savers = []
    for saver in block.savers:
        order = order_of.get(saver.output)
        if order is not None:
            dims = sorted(saver.dims, key=lambda dim: order.index(dim.variable))
            saver = replace(saver, dims=tuple(dims))
        savers.append(saver)
    return replace(block, savers=tuple(savers))


def _silent(report: RegionReport) -> None:
    """Report nothing."""
