"""The search: all kernels that compute a program, at structural sizes, level by level of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.abstract.saturated import AbstractEGraph, saturated
from relational_tensat.mugraph.field.residues import Residues
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.labelled import Labelled
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.search.block_search import BlockSearch
from relational_tensat.mugraph.search.block_terms import Job, Operand, fingerprint
from relational_tensat.mugraph.search.deriving import cheapest_kernel
from relational_tensat.mugraph.search.found import FoundKernel, Route
from relational_tensat.mugraph.search.growing_terms import Grower, Growth
from relational_tensat.mugraph.search.kernel_outputs import KernelOutputs, KernelTensor
from relational_tensat.mugraph.search.reachability import needed_sets
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.search_tables import SearchTables
from relational_tensat.mugraph.search.structure import configurations, structure_of
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
    growth: Growth
    routes: int


Progress: TypeAlias = Callable[[SearchProgress], None]


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """How large the search for the kernels of one level was."""

    jobs: int
    configurations: int
    candidates: int
    terms: int
    kernel_tensors: int
    hits: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes:
        routes: ways of computing the program, by one kernel, by two, ….
        levels: how large the search was, level by level of kernels.
        abstract_e_nodes, abstract_e_classes: of the abstract e-graph.
        is_complete: whether it was ended by no limit but those of operators and kernels.
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
) -> SearchResult:
    """Search kernels that compute a program.

    Args:
        program: of operators of libraries only, on index variables as they are.
        options: how far to go.
        watch: ends the search with what was found so far.
        progress: called before each size of terms, or after each part that a process has done.
        tables: keep those of the search.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    options = options or SearchOptions()
    watch = watch or Watch()
    if options.time_limit_s is not None:
        watch = watch.within(options.time_limit_s)
    return _Search(program, options, watch, progress or _silent, tables).run()


#: Ways to some tensors: each has, for each kernel before, what it can be.
_Ways: TypeAlias = tuple[tuple[tuple[FoundKernel, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is available to the next kernel, and how it came about.

    Attributes:
        operands: what it may load.
        before: ways to it; asked only where it leads to the program.
    """

    operands: tuple[Operand, ...]
    before: Callable[[], _Ways]


class _Search:
    def __init__(
        self,
        program: MuGraph,
        options: SearchOptions,
        watch: Watch,
        progress: Progress,
        tables: SearchTables | None,
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
            abstract = _without_classes(abstract)
        self._database = abstract.database
        self._roots = frozenset(abstract.outputs)
        operands, values = self._draw(abstract)
        self._targets = tuple(values[output] for output in self._program.outputs)
        self._own = frozenset(values.values())
        self._given = operands
        works = [_Work(operands, lambda: ((),))]
        with Grower(self._structure, self._options, self._watch) as grower:
            for level in range(1, self._options.max_kernels + 1):
                if works:
                    works = self._level(works, level, grower)
        if self._tables is not None:
            self._tables.end(self._database)
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
                    1 << place,
                )
                for place, (name, kind) in enumerate(small.inputs.items())
            )  # fmt: skip
            dims = kernel_tensors(small)
            return operands, {
                name: fingerprint(Labelled(variables(dims[name]), result))
                for name, result in results.items()
            }
        raise InputError(f"{self._program.name}: a denominator is 0 whatever the inputs are")

    def _level(self, works: Sequence[_Work], level: int, grower: Grower) -> list[_Work]:
        """Search the next kernel of all works; return the works of the level after it."""
        jobs = [self._job(work) for work in works]
        before_of = {id(job): work.before for job, work in zip(jobs, works, strict=True)}
        search, is_complete = grower.grown(
            self._database,
            jobs,
            lambda growth: self._progress(SearchProgress(level, growth, len(self._routes))),
        )
        self._is_complete &= is_complete
        if self._tables is not None:
            self._tables.keep(self._database, level, self._structure.variables)
        outputs = KernelOutputs(search, level, self._own, has_several=len(self._targets) > 1)
        hits = outputs.with_values(self._targets)
        for job in jobs:
            mine = [(c, terms) for c, terms in hits if search.configurations[c][0] is job]
            if mine:
                last = tuple(
                    self._kernel(search, level, c, t, self._program.outputs) for c, t in mine
                )
                self._routes += [
                    Route(self._program, (*before, last), self._program.outputs)
                    for before in before_of[id(job)]()
                ]
        count = search.counts
        self._levels.append(
            LevelCounts(
                len(jobs), count.configurations, count.candidates, count.terms,
                len(outputs.tensors), len(hits),
            )
        )  # fmt: skip
        if level == self._options.max_kernels or self._watch.is_over:
            return []
        search.keep_derivations()
        return list(self._next_works(search, level, outputs, before_of))

    def _job(self, work: _Work) -> Job:
        dims = [operand.dims for operand in work.operands]
        concatenate = self._options.concatenate
        found = configurations(dims, self._structure.known, concatenate=concatenate)
        return Job(work.operands, tuple(found))

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
        before_of: Mapping[int, Callable[[], _Ways]],
    ) -> Iterator[_Work]:
        """Yield what the next kernel can load: what one kernel stores, and inputs that it takes with it."""
        useful = [tensor for tensor in outputs.tensors if tensor.value not in self._targets]
        pairs = [pair for pair in outputs.pairs() if all(tensor in useful for tensor in pair)]
        for chosen, given in needed_sets(
            self._database,
            [*((t,) for t in useful), *pairs],
            self._given,
            None if "reachability" in self._options.disable else self._roots,
        ):
            before = cache(partial(self._ways, search, level, chosen, before_of))
            yield _Work((*(tensor.operand for tensor in chosen), *given), before)

    def _ways(
        self,
        search: BlockSearch,
        level: int,
        chosen: Sequence[KernelTensor],
        before_of: Mapping[int, Callable[[], _Ways]],
    ) -> _Ways:
        """Return the ways to some tensors: kernels before, and what stores these, job by job."""
        names = [tensor.operand.name for tensor in chosen]
        wide = tuple(tensor.operand.name for tensor in chosen if tensor.is_wide)
        made: dict[int, list[FoundKernel]] = {}
        for config in sorted(set.intersection(*(set(tensor.terms) for tensor in chosen))):
            job, _ = search.configurations[config]
            terms = [tensor.terms[config] for tensor in chosen]
            kernel = self._kernel(search, level, config, terms, names)
            made.setdefault(id(job), []).append(replace(kernel, wide=wide))
        return tuple(
            (*before, tuple(kernels))
            for job_id, kernels in made.items()
            for before in before_of[job_id]()
        )


def _silent(progress: SearchProgress) -> None:
    """Report nothing."""


def _without_classes(abstract: AbstractEGraph) -> AbstractEGraph:
    """Return an abstract e-graph of one class: every expression is a part of the program's."""
    abstract.database.run("mugraph/forget_classes")
    classes = dict.fromkeys(abstract.classes, 1)
    return replace(abstract, classes=classes, outputs=(1,) * len(abstract.outputs))
