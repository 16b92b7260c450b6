"""Kernels of a model's own: functions and reductions by rows, regions with products by search.

Of all parts of graphs that kernels may stand for, equal ones are sought once, the most promising first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostSource
from relational_tensat.mugraph.candidate_cache import CandidateCache
from relational_tensat.mugraph.fusion.candidates import (
    FusionPlan,
    KernelCandidate,
    Key,
    Version,
    chain_candidates,
    pattern_hash,
    region_candidates,
)
from relational_tensat.mugraph.fusion.kernel_builder import KernelBuilder
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel, RegionReport
from relational_tensat.mugraph.fusion.savings import SavingsModel
from relational_tensat.mugraph.kernel_finder import KernelSearcher, SearchEffort, UnfitError
from relational_tensat.mugraph.regions.regions import RegionRow
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.rules.backends.backend import know_kernels

#: A search takes so many times as long with one more operator.
_GROWTH = 1.25
#: A search for so few operators a value takes half a second: queries, keys and values of one input, say.
_FEW_EACH = 2


class ModelParts:
    """The parts of graphs that compute the same.

    Attributes:
        plans: of each graph with its parts.
        plan: of all graphs, whose values of one e-class are one.
        left_out: nodes outside all parts, and why.

    Args:
        savings: their costs, and the possible savings of kernels for them.
        most_operators: of a part with products.
    """

    def __init__(self, savings: SavingsModel, most_operators: int) -> None:
        self.plans: list[FusionPlan] = []
        self.plan = FusionPlan(savings.operator_us)
        self.left_out: list[RegionRow] = []
        self._savings = savings
        self._most_operators = most_operators
        self._patterns: set[str] = set()
        self._reasons: set[tuple[object, ...]] = set()

    def of(self, version: Version) -> dict[str, KernelCandidate]:
        """Return the parts of one more graph by pattern, without those of graphs before."""
        source, graph = version.source, version.graph
        found = [*chain_candidates(graph, self._leave, source)]
        if self._savings.profile is not None:
            found += region_candidates(graph, self._most_operators, self._leave, source)
        elif self._savings.is_measured:  # what has products stays with the runtime
            regions = region_candidates(graph, self._most_operators, self._leave, source)
            found += [c for c in regions if c.has_conditions and not c.has_products]
        places = [(pattern_hash(candidate), candidate) for candidate in found]
        self.plans.append(FusionPlan(self._savings.operator_us))
        for plan in (self.plans[-1], self.plan):
            plan.add(version, places)
        new = {pattern: c for pattern, c in places if pattern not in self._patterns}
        self._patterns |= new.keys()
        for candidate in new.values():
            if self.saving_us(candidate) <= 0:
                least = self._savings.least_us(candidate)
                reason = f"a kernel takes {least:.2f} µs at least, modelled"
                self.left_out.append(self.row(candidate, "no gain", reason))
        return {pattern: c for pattern, c in new.items() if self.saving_us(c) > 0}

    def row(self, candidate: KernelCandidate, fate: str, reason: str) -> RegionRow:
        """Return what became of a part."""
        operators = tuple(step.op for step in candidate.program.operators)
        cost_us = self._savings.operators_us(candidate)
        return RegionRow(candidate.source, candidate.outputs, operators, fate, reason, cost_us)

    def saving_us(self, candidate: KernelCandidate) -> float:
        """Return what a kernel might save at best."""
        return self._savings.operators_us(candidate) - self._savings.least_us(candidate)

    def in_order(self, parts: Mapping[Key, KernelCandidate]) -> dict[Key, KernelCandidate]:
        """Return parts as they are sought; of those alike first what may save most for its time."""
        return dict(sorted(sorted(parts.items()), key=lambda part: self._rank(part[1])))

    def _rank(self, candidate: KernelCandidate) -> tuple[int, float]:
        for_its_time = self.saving_us(candidate) / _GROWTH ** len(candidate.program.operators)
        return order(candidate), -for_its_time

    def _leave(self, row: RegionRow) -> None:
        """Note what is left out, unless it is in a graph before for the same reason."""
        content = row.outputs, row.operators, row.fate, row.reason
        if row.source != "other" or content not in self._reasons:
            self._reasons.add(content)
            self.left_out.append(row)


def order(candidate: KernelCandidate) -> int:
    """Return when a kernel for a part is sought. Parts without products need no search. Next come those
    with one value, and values alike of few operators each; then those with two, three and more."""
    if not candidate.has_products:
        return 0
    steps, values = candidate.program.operators, candidate.outputs
    last = {step.op for step in steps if step.output in candidate.program.outputs}
    return 1 if len(last) == 1 and len(steps) <= _FEW_EACH * len(values) else len(values)


#: A search is worth it where the whole graph may become cheaper by this part.
_LEAST_GAIN = 1e-3
_NO_GAIN = "whatever its kernel takes, other kernels are modelled to make the graph as cheap"
#: Parts with more values come after μGraphs of several kernels.
_PAIRS = 2
_NO_TIME = "the time was over, or someone ended the search, before its turn"


Report: TypeAlias = Callable[[RegionReport], None]


@dataclass(frozen=True, slots=True)
class FusionResult:
    """The outcome of a search for a model's own kernels.

    Attributes:
        kernels: all that were made or found, each verified.
        parts: of the model, that it was done with; one for which several kernels were sought, too, is two.
        total: how many there are.
        regions: the outcome of all parts, those that were left out, too.
        is_complete: whether no kernel for a part of any of the graphs could make one cheaper.
    """

    kernels: tuple[OwnKernel, ...]
    parts: int
    total: int
    regions: tuple[RegionRow, ...]
    is_complete: bool


def own_kernels(
    rounds: Iterable[Iterable[Version]],
    costs: CostSource,
    options: SearchOptions,
    watch: Watch | None = None,
    report: Report | None = None,
    cache: CandidateCache | None = None,
) -> FusionResult:
    """Return kernels for the parts of a model, each verified; which are used is for extraction to choose.

    Parts overlap. Of a recurring one there is one kernel, which its rule finds everywhere.

    Args:
        rounds: the model and others that compute the same. The next ones are asked for when no kernel for
            those before is left that could make a graph cheaper. If costs are no profile of a GPU, there is
            the first round only.
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
    savings = SavingsModel(costs)
    builder = KernelBuilder(savings, KernelSearcher(options, watch, cache))
    return _KernelFusion(savings, builder, options, watch, report or _silent).run(rounds)


class _Stage:
    """Parts whose kernels are sought before those of the next stage.

    Attributes:
        least_us: the least that kernels not sought yet take.
        is_settled: whether no graph could be cheaper by one of them.
    """

    def __init__(self) -> None:
        self.least_us: dict[Key, float] = {}
        self.is_settled = True


class _KernelFusion:
    def __init__(
        self,
        savings: SavingsModel,
        builder: KernelBuilder,
        options: SearchOptions,
        watch: Watch,
        report: Report,
    ) -> None:
        self._savings = savings
        self._builder = builder
        self._options = options
        self._watch = watch
        self._report = report
        self._parts = ModelParts(savings, options.max_operators)
        self._candidates: dict[str, KernelCandidate] = {}
        self._few, self._several, self._many = self._stages = _Stage(), _Stage(), _Stage()
        self._rows: list[RegionRow] = []
        self._known_us: dict[Key, float] = {}
        self._sought: set[Key] = set()
        self._unfit: set[str] = set()
        self._done = self._total = 0

    def run(self, rounds: Iterable[Iterable[Version]]) -> FusionResult:
        for number, versions in enumerate(rounds):
            new: dict[Key, KernelCandidate] = {}
            for version in versions:
                new.update({(name, 1): c for name, c in self._parts.of(version).items()})
            self._candidates.update({pattern: c for (pattern, _), c in new.items()})
            if number == 0:
                alone = {key: c for key, c in new.items() if not c.has_products}
                self._build_all(self._parts.in_order(alone))
            if self._savings.profile is None:
                break
            self._set_lower_bounds(new)
            if number == 0:  # the most promising graphs, each for itself
                self._build_by_plans(self._parts.plans)
            self._build_by_plans([self._parts.plan])
            if self._watch.is_over:
                break
        rows = tuple(dict.fromkeys([*self._parts.left_out, *self._rows, *self._rows_of_rest()]))
        is_complete = all(stage.is_settled for stage in self._stages)
        return FusionResult(self._builder.kernels, self._done, self._total, rows, is_complete)

    def _set_lower_bounds(self, new: Mapping[Key, KernelCandidate]) -> None:
        for key, candidate in new.items():
            if key not in self._sought:
                stage = self._many if order(candidate) > _PAIRS else self._few
                stage.least_us[key] = self._savings.least_us(candidate)

    def _build_by_plans(self, plans: Sequence[FusionPlan]) -> None:
        """Seek kernels while one could make a graph cheaper: one for few values, several, one for many."""
        self._build_until_settled(self._few, plans)
        self._several.least_us.update(self._several_us())
        self._build_until_settled(self._several, plans)
        self._build_until_settled(self._many, plans)

    def _build_until_settled(self, stage: _Stage, plans: Sequence[FusionPlan]) -> None:
        """Seek kernels until no graph could be cheaper by one of those that are left."""
        stage.is_settled = not stage.least_us
        while not stage.is_settled and not self._watch.is_over:
            wanted = {key for plan in plans for key in self._wanted(plan, stage.least_us)}
            self._build_all(self._parts.in_order({key: self._candidates[key[0]] for key in wanted}))
            for key in wanted:
                del stage.least_us[key]
            stage.is_settled = not wanted

    def _rows_of_rest(self) -> Iterator[RegionRow]:
        for stage in self._stages:
            fate, reason = ("no gain", _NO_GAIN) if stage.is_settled else ("no time", _NO_TIME)
            self._total += 0 if stage.is_settled else len(stage.least_us)
            for pattern, _ in stage.least_us:
                yield self._parts.row(self._candidates[pattern], fate, reason)

    def _wanted(self, plan: FusionPlan, least_us: Mapping[Key, float]) -> frozenset[Key]:
        """Return the kernels not sought yet that a graph would have which is cheaper than all known ones.

        Args:
            plan: the graphs.
            least_us: the least that these kernels take.
        """
        hoped = plan.cheapest({**self._known_us, **least_us})
        known = plan.cheapest(self._known_us)
        is_cheaper = hoped.cost_us < (1 - _LEAST_GAIN) * known.cost_us
        return hoped.keys & least_us.keys() if is_cheaper else frozenset()

    def _several_us(self) -> dict[Key, float]:
        """Return what several kernels take at least for parts whose one takes longer, or does not fit.

        Where no search finds one kernel, two that parts of it become are to be had already.
        """
        found: dict[Key, float] = {}
        if self._options.max_kernels == 1:
            return found
        for pattern, candidate in self._candidates.items():
            one_us = math.inf if pattern in self._unfit else self._known_us.get((pattern, 1), 0.0)
            now_us = min(one_us, self._savings.operators_us(candidate))
            least_us = self._savings.least_us(candidate, kernels=2)
            # Between kernels all is narrow.
            is_fit = candidate.has_products and not candidate.is_cast
            if is_fit and least_us < now_us and (pattern, 2) not in self._sought:
                found[pattern, 2] = least_us
        return found

    def _build_all(self, wanted: Mapping[Key, KernelCandidate]) -> None:
        self._total += len(wanted)
        self._sought |= wanted.keys()
        for place, (key, candidate) in enumerate(wanted.items()):
            takes_time = candidate.has_products or self._savings.is_measured
            if self._watch.is_over and takes_time:
                late = list(wanted.values())[place:]
                self._rows += [self._parts.row(each, "no time", _NO_TIME) for each in late]
                break
            self._build_one(key, candidate)

    def _build_one(self, key: Key, candidate: KernelCandidate) -> None:
        kernel_us, reason, mugraph = None, "", ""
        try:
            kernel = self._builder.make(candidate, self._effort(key))
            kernel_us, mugraph = kernel.cost_us, kernel.key
            self._known_us[key] = kernel_us or 0.0
        except RelationalTensatError as error:
            reason = str(error)
            if isinstance(error, UnfitError):
                self._unfit.add(key[0])
        self._done += 1
        row = replace(
            self._parts.row(candidate, "kernel" if mugraph else "none found", reason),
            kernel_us=kernel_us, mugraph=mugraph,
        )  # fmt: skip
        self._rows.append(row)
        self._report(
            RegionReport(
                self._done, self._total, candidate.outputs, row.operators,
                self._savings.operators_us(candidate), kernel_us, reason,
            )
        )  # fmt: skip

    def _effort(self, key: Key) -> SearchEffort:
        _, kernels = key
        if kernels == 1:
            return SearchEffort(kernels=1, more_operators=1)
        return SearchEffort(kernels=self._options.max_kernels, more_operators=2)


def _silent(report: RegionReport) -> None:
    """Report nothing."""
