"""The search: all kernels that compute a program, at structural sizes, level by level of kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.residues import Residues
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.search.abstract_egraph import AbstractEGraph, saturated
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import Job, Operand, fingerprint
from relational_tensat.mugraph.search.kernel_outputs import KernelOutputs, KernelTensor, needed_sets
from relational_tensat.mugraph.search.routes import (
    FoundKernel,
    NoBound,
    Route,
    SearchBound,
    Ways,
    cheapest_kernel,
)
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import SearchTables, configurations, structure_of
from relational_tensat.mugraph.search.term_growth import Grower, TermGrowth
from relational_tensat.tensor.field import Undefined

#: Draws of inputs until no denominator is 0.
_DRAWS = 10


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is.

    Attributes:
        level: of kernels, from 1 on.
        growth: of this level's terms.
        routes: ways of computing the program that the levels before have found.
    """

    level: int
    growth: TermGrowth
    routes: int


Progress: TypeAlias = Callable[[SearchProgress], None]


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """How large the search for the kernels of one level was.

    Attributes:
        jobs: sets of tensors that blocks may load.
        hits: terms that are the program's result.
        too_costly: sets of tensors for the next level's blocks that a bound left out.
    """

    jobs: int
    configurations: int
    candidates: int
    terms: int
    kernel_tensors: int
    hits: int
    too_costly: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The outcome of a search.

    Attributes:
        routes: ways of computing the program, by one kernel, by two, ….
        levels: how large the search was, level by level of kernels.
        abstract_e_nodes, abstract_e_classes: of the abstract e-graph.
        is_complete: whether it was ended by no limit but those of operators and kernels, and a bound.
    """

    routes: tuple[Route, ...]
    levels: tuple[LevelCounts, ...]
    abstract_e_nodes: int
    abstract_e_classes: int
    is_complete: bool


def search_kernels(
    program: MuGraph,
    options: SearchOptions | None = None,
    watch: Watch | None = None,
    progress: Progress | None = None,
    tables: SearchTables | None = None,
    bound: SearchBound | None = None,
) -> SearchResult:
    """Search kernels that compute a program.

    Args:
        program: of operators of libraries only, on index variables as they are.
        options: how far to go.
        watch: ends the search with what was found so far.
        progress: called before each size of terms, or after each part that a process has done.
        tables: keep those of the search.
        bound: graphs that cost more than the cheapest found are left out; without it, none are.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    options = options or SearchOptions()
    watch = watch or Watch()
    if options.time_limit_s is not None:
        watch = watch.within(options.time_limit_s)
    return _KernelSearch(
        program, options, watch, progress or _silent, tables, bound or NoBound()
    ).run()


@dataclass(frozen=True, slots=True)
class _Work:
    """The tensors for the next kernel, and how they came about.

    Attributes:
        operands: the tensors that it may load.
        before: ways to it; asked only where it leads to the program.
        least_us: no way to it takes less.
    """

    operands: tuple[Operand, ...]
    before: Callable[[], Ways]
    least_us: float = 0.0


class _KernelSearch:
    def __init__(
        self,
        program: MuGraph,
        options: SearchOptions,
        watch: Watch,
        progress: Progress,
        tables: SearchTables | None,
        bound: SearchBound,
    ) -> None:
        made = {step.outputs[0] for step in program.steps}
        if not program.outputs or not made.issuperset(program.outputs):
            raise InputError(
                f"{program.name} has outputs {program.outputs}, expected computed ones"
            )
        self._program = program
        self._options = options
        self._watch = watch
        self._progress = progress
        self._tables = tables
        self._bound = bound
        self._structure = structure_of(program)
        self._sizes = {d.variable: d.size for dims in program.inputs.values() for d in dims}
        self._sizes |= {
            v.name: v.size for v in self._structure.variables if v.name not in self._sizes
        }
        self._arithmetic = Residues(options.seed)
        self._routes: list[Route] = []
        self._levels: list[LevelCounts] = []
        self._is_complete = True

    def run(self) -> SearchResult:
        """Search level after level of kernels."""
        abstract = saturated(self._structure.program, self._options.time_limit_s)
        if "pruning" in self._options.disable:
            # one class: every expression is a part of the program's
            abstract.database.run("mugraph/forget_classes")
            classes = dict.fromkeys(abstract.classes, 1)
            abstract = replace(abstract, classes=classes, outputs=(1,) * len(abstract.outputs))
        self._database = abstract.database
        self._roots = frozenset(abstract.outputs)
        operands, values = self._draw(abstract)
        self._targets = tuple(values[output] for output in self._program.outputs)
        self._own = frozenset(values.values())
        self._given = operands
        self._has_several = len(self._targets) > 1
        works = [_Work(operands, lambda: ((),))]
        with Grower(self._structure, self._options, self._watch) as grower:
            for level in range(1, self._options.max_kernels + 1):
                if works:
                    works = self._level(works, level, grower)
        if self._tables is not None:
            self._tables.end()
        self._database.close()
        return SearchResult(
            tuple(self._routes), tuple(self._levels), abstract.e_nodes, abstract.e_classes,
            self._is_complete,
        )  # fmt: skip

    def _draw(self, abstract: AbstractEGraph) -> tuple[tuple[Operand, ...], dict[str, int]]:
        """Return random inputs and the fingerprints of what the program computes of them, step by step."""
        small = self._structure.program
        every = tuple(step.outputs[0] for step in small.steps)
        for draw in range(_DRAWS):
            seed = self._options.seed + 97 * draw
            values = {
                name: self._arithmetic.draw([d.size for d in kind], seed + place)
                for place, (name, kind) in enumerate(small.inputs.items())
            }
            try:
                results = evaluate(replace(small, outputs=every), values, self._arithmetic)
            except Undefined:
                continue
            operands = tuple(
                Operand(
                    name, kind, Labelled(variables(kind), values[name]), abstract.classes[name],
                    1 << place, is_condition=name in small.conditions,
                )
                for place, (name, kind) in enumerate(small.inputs.items())
                if name in abstract.classes  # the others are read by nothing
            )  # fmt: skip
            dims = kernel_tensors(small)
            self._results = tuple(
                Operand(
                    name, dims[name], Labelled(variables(dims[name]), results[name]), klass,
                    (1 << len(small.inputs)) - 1,
                )
                for name, klass in zip(small.outputs, abstract.outputs, strict=True)
            )  # fmt: skip
            return operands, {
                name: fingerprint(Labelled(variables(dims[name]), result))
                for name, result in results.items()
            }
        raise InputError(f"{self._program.name}: a denominator is 0 whatever the inputs are")

    def _level(self, works: Sequence[_Work], level: int, grower: Grower) -> list[_Work]:
        """Search the next kernel of all works; return the works of the level after it."""
        jobs = [self._job(work) for work in works]
        work_of = {id(job): work for job, work in zip(jobs, works, strict=True)}
        search, is_complete = grower.grown(
            self._database,
            jobs,
            lambda growth: self._progress(SearchProgress(level, growth, len(self._routes))),
        )
        self._is_complete &= is_complete
        if self._tables is not None:
            self._tables.keep(self._database, level, self._structure.variables)
        outputs = KernelOutputs(search, level, self._own, has_several=self._has_several)
        hits = outputs.with_values(self._targets)
        hits_of: dict[int, list[tuple[int, list[int]]]] = {id(job): [] for job in jobs}
        for config, terms in hits:
            hits_of[id(search.configurations[config][0])].append((config, terms))
        routes = {}
        for job in sorted(jobs, key=lambda job: work_of[id(job)].least_us):
            routes[id(job)] = self._routes_of(search, level, work_of[id(job)], hits_of[id(job)])
        self._routes += [route for job in jobs for route in routes[id(job)]]
        count = search.counts
        self._levels.append(
            LevelCounts(
                len(jobs), count.configurations, count.candidates, count.terms,
                len(outputs.tensors), len(hits),
            )
        )  # fmt: skip
        if level == self._options.max_kernels:
            return []
        search.keep_derivations()
        return self._next_works(search, level, outputs, work_of)

    def _routes_of(
        self,
        search: BlockSearch,
        level: int,
        work: _Work,
        hits: Sequence[tuple[int, Sequence[int]]],
    ) -> list[Route]:
        """Return the ways that end in one of a work's hits."""
        if not hits or self._costs_too_much(work):
            return []
        names = self._program.outputs
        last = tuple(self._kernel(search, level, config, terms, names) for config, terms in hits)
        routes = [Route(self._program, (*before, last), names) for before in work.before()]
        for route in routes:
            self._bound.note(route)
        return routes

    def _job(self, work: _Work) -> Job:
        dims = [operand.dims for operand in work.operands]
        return Job(work.operands, tuple(configurations(dims, self._structure.known)))

    def _kernel(
        self,
        search: BlockSearch,
        level: int,
        config: int,
        terms: Sequence[int],
        names: Sequence[str],
    ) -> FoundKernel:
        return cheapest_kernel(search, config, terms, names, self._sizes, level)

    def _next_works(
        self,
        search: BlockSearch,
        level: int,
        outputs: KernelOutputs,
        work_of: Mapping[int, _Work],
    ) -> list[_Work]:
        """Return the tensors that the next kernel can load: those that one stores, and inputs that it takes
        with it."""
        useful = [tensor for tensor in outputs.tensors if tensor.value not in self._targets]
        pairs = [pair for pair in outputs.pairs() if all(tensor in useful for tensor in pair)]
        works, too_costly = [], 0
        for chosen, given in needed_sets(
            self._database,
            [*((t,) for t in useful), *pairs],
            self._given,
            None if "reachability" in self._options.disable else self._roots,
            self._watch,
        ):
            if self._watch.is_over:
                self._is_complete = False
                return []
            least_us = min(
                work_of[job_id].least_us + self._least_storing_us(work_of[job_id], chosen)
                for job_id in _makers(search, chosen)
            )
            before = cache(partial(self._ways, search, level, chosen, work_of))
            work = _Work((*(tensor.operand for tensor in chosen), *given), before, least_us)
            if self._costs_too_much(work):
                too_costly += 1
            else:
                works.append(work)
        self._is_complete &= not self._watch.is_over
        self._levels[-1] = replace(self._levels[-1], too_costly=too_costly)
        return works

    def _least_storing_us(self, work: _Work, chosen: Sequence[KernelTensor]) -> float:
        """Return what no kernel of a work takes less than that stores some tensors."""
        loads: Sequence[Operand] = work.operands
        if work.operands == self._given:  # of inputs, those that the tensors depend on
            loads = [o for o in self._given if any(o.uses & t.operand.uses for t in chosen)]
        elif self._has_several:
            loads = ()
        return self._bound.least_kernel_us((*loads, *(tensor.operand for tensor in chosen)))

    def _costs_too_much(self, work: _Work) -> bool:
        """Whether all that begins with a work costs more than what was found."""
        if not self._bound.is_over(math.inf):  # nothing was: ways need not be asked
            return False
        loads = () if self._has_several else work.operands  # of several outputs, each may need some
        last_us = self._bound.least_kernel_us((*loads, *self._results))
        if self._bound.is_over(work.least_us + last_us):
            return True
        return self._bound.is_over(self._bound.least_before_us(work.before()) + last_us)

    def _ways(
        self,
        search: BlockSearch,
        level: int,
        chosen: Sequence[KernelTensor],
        work_of: Mapping[int, _Work],
    ) -> Ways:
        """Return the ways to some tensors: kernels before, and what stores these, job by job."""
        names = [tensor.operand.name for tensor in chosen]
        wide = tuple(tensor.operand.name for tensor in chosen if tensor.operand.is_wide)
        ways: list[tuple[tuple[FoundKernel, ...], ...]] = []
        for job_id, configs in _makers(search, chosen).items():
            kernels = []
            for config in configs:
                terms = [tensor.terms[config] for tensor in chosen]
                kernel = self._kernel(search, level, config, terms, names)
                kernels.append(replace(kernel, wide=wide))
            ways += [(*before, tuple(kernels)) for before in work_of[job_id].before()]
        return tuple(ways)


def _makers(search: BlockSearch, chosen: Sequence[KernelTensor]) -> dict[int, list[int]]:
    """Return the configurations that can store some tensors together, by their jobs' ids."""
    makers: dict[int, list[int]] = {}
    for config in sorted(set.intersection(*(set(tensor.terms) for tensor in chosen))):
        makers.setdefault(id(search.configurations[config][0]), []).append(config)
    return makers


def _silent(progress: SearchProgress) -> None:
    """Report nothing."""
