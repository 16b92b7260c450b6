"""The graphs that race: the cheapest of the e-graph that differ in the rules that made them.

If costs are measured, the cheapest by the profile alone races, too, at any cost by the sums: of a large
e-graph most kernels may be estimates, and whole graphs decide. Graphs that were timed whole, by this run or
by one before it in the same setting, are remembered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from relational_tensat.base.plan import Plan
from relational_tensat.cost import CostSource, Device, graph_cost_us
from relational_tensat.cost.cache import CostCache, default_cache
from relational_tensat.cost.earlier_runs import RACING, Raced, RunsBefore
from relational_tensat.cost.key import Contents, now
from relational_tensat.cost.race import RACE_VERSION, RaceResult
from relational_tensat.cost.source import ABOUT
from relational_tensat.extract import Extraction, extract
from relational_tensat.extract.families import FamilyChoice, cheapest_by_family
from relational_tensat.extract.few_measurements import chosen_enodes
from relational_tensat.extract.index import nodes_by_class
from relational_tensat.extract.problem import (
    COST_TOLERANCE,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    relative_gap,
)
from relational_tensat.extract.tables import (
    TableProblem,
    ask_for_chosen,
    choice_of,
    chosen_choice,
    chosen_graph,
    extraction_problem,
    families_of,
    rules_of_chosen,
)
from relational_tensat.extract.tables import choose as write_choice
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.run.values import ExtractedRun, LoadedRun
from relational_tensat.tensor import Graph


@dataclass(frozen=True, slots=True, eq=False)
class Contestant:
    """A graph of the e-graph, and the choice that it is of.

    Attributes:
        without: the names of the families that it does without.
        is_by_profile: it is the cheapest by the profile alone.
    """

    graph: Graph
    found: FamilyChoice
    without: tuple[str, ...]
    is_by_profile: bool = False


def candidates(
    extracted: ExtractedRun,
    table: TableProblem,
    is_enough: Callable[[Sequence[Contestant]], bool],
    is_over: Callable[[], bool],
    limit_s: float,
) -> Plan[list[Contestant]]:
    """Return the cheapest graphs that differ, the chosen one first, then that by the profile.

    The others cost less than the original.

    Args:
        is_enough: whether these are all that is wanted.
        is_over: whether to look for no more.
        limit_s: each is extracted within so many seconds.
    """
    loaded = extracted.loaded
    first = chosen_choice(loaded.egraph, table)
    if first is None:
        return []
    found: list[Contestant] = []
    original_us = loaded.original_us
    # the rules that the backend carries out by itself in any case
    name = loaded.run.options.rules.backend
    rules = load_backend(name).rules(has_fixed_shapes=loaded.model.dynamic is None) if name else []
    family, names = families_of(
        loaded.egraph, table, frozenset(rule.name.partition("[")[0] for rule in rules)
    )
    seen: set[tuple[tuple[str, tuple[str, ...], str], ...]] = set()
    try:
        for alike in _cheapest(extracted, table, family, first, is_over, limit_s):
            next_ones = []
            for each in alike:
                graph = extracted.graph
                if each.choice is not first:
                    graph = yield partial(graph_of, loaded, table, each.choice)
                key = tuple((node.op, node.inputs, repr(node.attrs)) for node in graph.nodes)
                if key not in seen:
                    without = tuple(names[number] for number in sorted(each.without))
                    is_by_profile = each is not alike[0]
                    next_ones.append(Contestant(graph, each, without, is_by_profile))
                seen.add(key)
            if not next_ones:
                continue
            if found and next_ones[0].found.cost_us >= original_us:
                break
            if found and (yield from _is_costlier_run(loaded, next_ones[0].graph, original_us)):
                continue
            found += next_ones
            if is_enough(found):
                break
    finally:
        write_choice(loaded.egraph, table, first)
    contestants: list[Contestant] = yield partial(_measured, loaded, table, found, original_us)
    return contestants


def _is_costlier_run(loaded: LoadedRun, graph: Graph, original_us: float) -> Plan[bool]:
    """Whether a graph costs as much as the original when it is run: an e-graph counts once a node that a
    backend computes for each reader again. Only costs that are known at once are asked.
    """
    if not loaded.cost.is_instant:
        return False
    yield partial(loaded.cost.as_run, graph)  # known then
    return graph_cost_us(graph, loaded.cost) >= original_us


def _measured(
    loaded: LoadedRun, table: TableProblem, found: Sequence[Contestant], original_us: float
) -> list[Contestant]:
    """Return candidates with what they cost, the first first; estimates may have brought costlier ones."""
    enodes = {enode for each in found for enode in chosen_enodes(table, each.found.choice)}
    if not ask_for_chosen(loaded.egraph, loaded.cost, sorted(enodes), ABOUT):
        return list(found)
    costed = costed_by_now(extraction_problem(loaded.egraph, loaded.cost, CostSource.about), found)
    by_profile = [each for each in costed[1:] if each.is_by_profile]
    others = [
        each for each in costed[1:] if not each.is_by_profile and each.found.cost_us < original_us
    ]
    return [*costed[:1], *by_profile, *sorted(others, key=lambda each: each.found.cost_us)]


def costed_by_now(table: TableProblem, found: Sequence[Contestant]) -> list[Contestant]:
    """Return candidates with what they cost in a problem of the same e-nodes."""
    return [
        replace(
            each, found=replace(each.found, cost_us=dag_cost_us(table.problem, each.found.choice))
        )
        for each in found
    ]


def _cheapest(
    extracted: ExtractedRun,
    table: TableProblem,
    family: Ints,
    first: Ints,
    is_over: Callable[[], bool],
    limit_s: float,
) -> Iterator[list[FamilyChoice]]:
    """Give choices: with the first that by the profile, if there is one, then one at a time."""
    options = extracted.loaded.run.options
    limits = replace(options.extraction, time_limit_s=limit_s)

    def solve(problem: ExtractionProblem) -> Extraction:
        return extract(problem, limits, options.process)

    by_family = cheapest_by_family(table.problem, family, first, solve, is_over)
    by_profile = _by_profile(extracted, table)
    yield [next(by_family), *([by_profile] if by_profile else [])]
    for each in by_family:
        yield [each]


def graph_of(loaded: LoadedRun, table: TableProblem, choice: Ints) -> Graph:
    """Return the graph of a choice, which the table ``chosen`` has then."""
    write_choice(loaded.egraph, table, choice)
    return expand_to_onnx(chosen_graph(loaded.egraph), loaded.original)


def _by_profile(extracted: ExtractedRun, table: TableProblem) -> FamilyChoice | None:
    """Return the cheapest choice by the profile, if costs are measured and all of it is in the problem."""
    by_profile = extracted.start.by_profile
    choice = None if by_profile is None else choice_of(table, by_profile.enodes)
    if choice is None:
        return None
    return FamilyChoice(choice, dag_cost_us(table.problem, choice), frozenset(), frozenset())


def with_candidate(
    extracted: ExtractedRun, table: TableProblem, candidate: Contestant
) -> ExtractedRun:
    """Return another graph of the e-graph as the one that was extracted and chosen."""
    egraph, extraction = extracted.loaded.egraph, extracted.extraction
    write_choice(egraph, table, candidate.found.choice)
    cost_us = candidate.found.cost_us
    if cost_us > extraction.cost_us * (1 + COST_TOLERANCE):
        gap = relative_gap(cost_us, extraction.bound_us)
        extraction = replace(
            extraction, choice=candidate.found.choice, cost_us=cost_us, gap=gap, optimal=False
        )
    return replace(
        extracted,
        graph=candidate.graph,
        chosen=candidate.graph,
        extraction=extraction,
        rules_used=rules_of_chosen(egraph),
    )


def fixed_share(table: TableProblem, original_us: float) -> float:
    """Return the share of the original's cost in kernels that every graph of the e-graph has.

    Those are the only e-nodes of classes that all e-nodes of such a class need, from the root on.

    Args:
        original_us: the original's cost.
    """
    problem = table.problem
    if not problem.has_original:
        return 0.0
    members = nodes_by_class(problem)
    stack, needed, fixed_us = [problem.root], set[int](), 0.0
    while stack:
        owner = stack.pop()
        if owner in needed:
            continue
        needed.add(owner)
        children = [set(problem.children(node).tolist()) for node in members[owner]]
        stack += set.intersection(*children)
        if len(members[owner]) == 1:
            fixed_us += float(problem.cost_us[members[owner][0]])
    return min(fixed_us / original_us, 1.0) if original_us else 0.0


@dataclass
class TimedGraphs:
    """The facts about graphs by hash of their content, and the candidates that have these.

    Attributes:
        candidates: those of this run that are known, in the order in which they were met.
        run: hash of the run; "" where costs are not measured.
        seconds_before: that earlier runs of this hash have raced.
        round_of: in which race of this run a graph was timed; those that are not in it were before.
    """

    original: str
    setting: str
    before: RunsBefore
    contents: Contents
    known: dict[str, Raced]
    candidates: dict[str, Contestant] = field(default_factory=dict)
    round_of: dict[str, int] = field(default_factory=dict)
    run: str = ""
    seconds_before: float = 0.0

    @classmethod
    def of(cls, loaded: LoadedRun, device: Device) -> TimedGraphs:
        """Return what is known of graphs that raced against a run's original."""
        options, contents = loaded.run.options, loaded.run.contents
        inputs = contents.of_arrays(loaded.inputs)
        setting = json.dumps({"race": RACE_VERSION, "inputs": inputs})
        original = contents.of(loaded.original)
        place = options.costs.cache or default_cache()
        before = RunsBefore(CostCache(place, is_dispensable=True), device.key)
        run_hash = loaded.run_hash
        if options.costs.race_again:
            return cls(original, setting, before, contents, {}, run=run_hash)
        all_known = before.raced(original, setting)
        known = {key: raced for key, raced in all_known.items() if raced.tells_something}
        spent_s = before.seconds(run_hash, RACING) if run_hash else 0.0
        return cls(original, setting, before, contents, known, run=run_hash, seconds_before=spent_s)

    def meet(self, candidate: Contestant) -> str:
        """Return the hash of a graph; the first candidate of one that is known stays."""
        digest = self.hash_of(candidate.graph)
        if digest in self.known:
            self.candidates.setdefault(digest, candidate)
        return digest

    def hash_of(self, graph: Graph) -> str:
        """Return the hash of a graph's content."""
        return self.contents.of(graph)

    @property
    def is_settled(self) -> bool:
        """Whether the fastest of all that are known is among the candidates."""
        won = self._won(self.known)
        return bool(won) and won[0] in self.candidates

    @property
    def winners(self) -> list[str]:
        """The candidates that won a race, the fastest first."""
        return self._won(self.candidates)

    def add(self, raced: Sequence[Contestant], result: RaceResult, number: int) -> None:
        """Keep the result of a race, the run's so many-th."""
        new = {}
        for place, (candidate, standing) in enumerate(zip(raced, result.standings, strict=True), 1):
            is_final = place == result.winner
            own = result.final if is_final else standing
            digest = self.hash_of(candidate.graph)
            new[digest] = Raced(own, is_final, result.noise, now())
            self.candidates[digest] = candidate
            self.round_of[digest] = number
        self.known |= new
        self.before.keep(self.original, self.setting, new)

    def spent(self, seconds: float) -> None:
        """Keep that so long was raced."""
        if self.run and seconds:
            self.before.add_seconds(self.run, RACING, seconds)

    def _won(self, digests: Iterable[str]) -> list[str]:
        """Return those of graphs that won a race, the fastest first."""
        won = [digest for digest in digests if self.known[digest].is_final]
        return sorted(won, key=lambda digest: -self.known[digest].standing.speedup)
