"""Kernels of a model's own: functions and reductions by rows, regions with products by search."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError, RelationalTensatError, VerificationError
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostSource
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.profile import Profile
from relational_tensat.mugraph.candidate_cache import CandidateCache
from relational_tensat.mugraph.finding import find_kernels
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
from relational_tensat.mugraph.fusion.region_report import RegionReport
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizing.libraries import least_us
from relational_tensat.mugraph.sizing.modelled import graph_us
from relational_tensat.mugraph.sizing.multiprocessors import Multiprocessors
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verifying_mugraphs import verify_mugraph
from relational_tensat.rules.targets.known import know_kernels
from relational_tensat.tensor import Graph, TensorType

_SEED = 2_000_000
#: A search takes so many times as long with one more operator.
_GROWTH = 1.25
#: No search takes more than this part of the time for all.
_LARGEST_SHARE = 0.25


Report: TypeAlias = Callable[[RegionReport], None]


def own_kernels(
    graphs: Sequence[Graph],
    costs: CostSource,
    options: SearchOptions,
    watch: Watch | None = None,
    report: Report | None = None,
    cache: CandidateCache | None = None,
) -> list[OwnKernel]:
    """Return kernels for the parts of a model, each verified; which are used is for extraction to choose.

    Parts overlap. Of a recurring one there is one kernel, which its rule finds everywhere.

    Args:
        graphs: the model, and others that compute the same.
        costs: of operators. Where these are no profile of a GPU, there are chains only.
        options: of the search for regions with products; its time limit is for all of them together.
        watch: ends the search with what was found so far.
        report: called for each part.
        cache: of what searches found before; without, none is used.
    """
    know_kernels()
    watch = watch or Watch()
    if options.time_limit_s is not None:
        watch = watch.within(options.time_limit_s)
    fusing = _Fusing(costs, options, watch, report or _silent, cache)
    return fusing.run(graphs)


def profile_of(costs: CostSource) -> Profile | None:
    """Return the profile of a GPU that costs are from; None for others."""
    model = costs.model if isinstance(costs, AnalyticSource) else None
    return model if isinstance(model, Profile) and model.multiprocessors else None


class _Fusing:
    def __init__(
        self,
        costs: CostSource,
        options: SearchOptions,
        watch: Watch,
        report: Report,
        cache: CandidateCache | None,
    ) -> None:
        self._costs = costs
        self._options = options
        self._watch = watch
        self._report = report
        self._cache = cache
        self._profile = profile_of(costs)
        self._kernels: dict[str, OwnKernel] = {}
        self._found: dict[str, MuGraph] = {}

    def run(self, graphs: Sequence[Graph]) -> list[OwnKernel]:
        candidates = self._candidates(graphs)
        for place, candidate in enumerate(candidates, 1):
            if self._watch.is_over and candidate.has_products:
                break
            kernel_us, reason = None, ""
            try:
                kernel = self._kernel(candidate)
                kernel_us = kernel.cost_us
            except RelationalTensatError as error:
                reason = str(error)
            operators = tuple(s.op for s in candidate.program.steps if isinstance(s, Operation))
            self._report(
                RegionReport(
                    place, len(candidates), candidate.outputs, operators,
                    self._operators_us(candidate), kernel_us, reason,
                )
            )  # fmt: skip
        return list(self._kernels.values())

    def _candidates(self, graphs: Sequence[Graph]) -> list[Candidate]:
        """Return parts of graphs, equal ones once: those without products, for which nothing is searched,
        then those that may save most for the time that a search takes."""
        found = [candidate for graph in graphs for candidate in chain_candidates(graph)]
        if self._profile is not None:
            most = self._options.max_operators
            found += [c for graph in graphs for c in region_candidates(graph, most)]
        distinct = list({pattern_hash(candidate): candidate for candidate in found}.values())
        worth = [
            (candidate.has_products, -saving_us / _GROWTH ** len(candidate.program.steps), place)
            for place, candidate in enumerate(distinct)
            if (saving_us := self._saving_us(candidate)) > 0
        ]
        return [distinct[place] for _, _, place in sorted(worth)]

    def _saving_us(self, candidate: Candidate) -> float:
        """Return what a kernel might save at best."""
        device = self._device(candidate)
        least = 0.0 if device is None else least_us(candidate.program, device)
        return self._operators_us(candidate) - least

    def _operators_us(self, candidate: Candidate) -> float:
        types = candidate.graph.types
        return sum(
            self._costs.cost_us(
                node.op,
                tuple(types[name] for name in node.inputs),
                types[node.outputs[0]],
                node.attrs,
            )
            for node in candidate.nodes
        )

    def _device(self, candidate: Candidate) -> Multiprocessors | None:
        return None if self._profile is None else Multiprocessors(self._profile, candidate.dtype)

    def _kernel(self, candidate: Candidate) -> OwnKernel:
        """Return the kernel of a candidate, with a rule for it.

        Raises:
            RelationalTensatError: there is none; says why.
        """
        if not computes_nodes(candidate, _SEED):
            raise VerificationError("its program computes something else")
        device = self._device(candidate)
        if candidate.has_products:
            assert device is not None
            graph = self._search(candidate.program, device)
        else:
            graph = _by_rows(candidate.program)
        graph = _stored_in_order(graph, candidate.orders)
        cost_us = None if device is None else graph_us(graph, device)
        if cost_us is not None and not math.isfinite(cost_us):
            raise InputError("a block of it is too large")
        key = f"k{content_hash(graph)}"
        known = self._kernels.get(key)
        rules = known.rules if known else ()
        name = f"fused-{key}-{len(rules) + 1}" if rules else f"fused-{key}"
        rule = kernel_rule(candidate, key, name)
        kernel = OwnKernel(
            key, graph, (*rules, rule), candidate.dtype,
            tuple(_shape(candidate, name) for name in candidate.inputs),
            tuple(_shape(candidate, name) for name in candidate.outputs), cost_us,
        )  # fmt: skip
        self._kernels[key] = kernel
        return kernel

    def _search(self, program: MuGraph, device: Multiprocessors) -> MuGraph:
        """Return the cheapest kernel that a search finds, once for a program.

        Raises:
            RelationalTensatError: it finds none.
        """
        content = f"{device.dtype} {content_hash(program)}"
        if content in self._found:
            return self._found[content]
        limit_s = self._options.time_limit_s
        most_s = (
            None if limit_s is None else min(self._watch.seconds_left, _LARGEST_SHARE * limit_s)
        )
        options = replace(self._options, max_operators=len(program.steps) + 1, time_limit_s=most_s)
        finding = find_kernels(program, options, self._watch, device=device, cache=self._cache)
        if finding.best is None:
            how = "" if finding.result.is_complete else " in the time"
            raise VerificationError("; ".join(dict.fromkeys(finding.reasons)) or f"none found{how}")
        self._found[content] = finding.best.graph
        return finding.best.graph


def _shape(candidate: Candidate, name: str) -> Shape:
    kind = candidate.graph.types[name]
    assert isinstance(kind, TensorType)
    return kind.shape


def _by_rows(program: MuGraph) -> MuGraph:
    """Return the verified kernel that computes a program row by row.

    Raises:
        RelationalTensatError: there is none, or it is wrong.
    """
    graph = stabilized(row_kernel(program))
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
