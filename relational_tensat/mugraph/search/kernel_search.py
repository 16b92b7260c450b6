"""The search: all kernels that compute a program, at structural sizes, level by level of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from relational_tensat.base.errors import InputError
from relational_tensat.base.watch import Watch
from relational_tensat.egraph.database import Interrupted
from relational_tensat.mugraph.abstract.saturated import AbstractEGraph, saturated
from relational_tensat.mugraph.field.residues import Residues
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.labelled import Labelled
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.search.block_search import (
    BlockSearch,
    Job,
    Operand,
    SearchCounts,
    fingerprint,
)
from relational_tensat.mugraph.search.deriving import cheapest_kernel
from relational_tensat.mugraph.search.found import FoundKernel, Route
from relational_tensat.mugraph.search.kernel_outputs import KernelOutputs, KernelTensor
from relational_tensat.mugraph.search.reachability import needed_sets
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import configurations, structure_of
from relational_tensat.tensor.field import Undefined

#: Draws of inputs until no denominator is 0.
_DRAWS = 10


#: Called with the level of kernels, the size of terms that comes next, and the counts so far.
Progress: TypeAlias = Callable[[int, int, SearchCounts], None]


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
) -> SearchResult:
    """Search kernels that compute a program.

    Args:
        program: of operators of libraries only, on index variables as they are.
        options: how far to go.
        watch: ends the search with what was found so far.
        progress: called before each size of terms, with the level of kernels, the size, and counts.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    options = options or SearchOptions()
    watch = watch or Watch()
    if options.time_limit_s is not None:
        watch = watch.within(options.time_limit_s)
    return _Search(program, options, watch, progress or _silent).run()


@dataclass(frozen=True, slots=True)
class _Work:
    """What is available to the next kernel, and how it came about.

    Attributes:
        operands: what it may load.
        before: ways to it; each has, for each kernel before, what it can be.
    """

    operands: tuple[Operand, ...]
    before: tuple[tuple[tuple[FoundKernel, ...], ...], ...] = ((),)


class _Search:
    def __init__(
        self, program: MuGraph, options: SearchOptions, watch: Watch, progress: Progress
    ) -> None:
        if len(program.outputs) != 1:
            raise InputError(f"{program.name} has {len(program.outputs)} outputs, expected one")
        self._program = program
        self._options = options
        self._watch = watch
        self._progress = progress
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
        abstract = saturated(self._structure.program)
        if "pruning" in self._options.disable:
            abstract = _without_classes(abstract)
        self._database = abstract.database
        (self._root,) = abstract.outputs
        operands, self._target = self._draw(abstract)
        self._given = operands
        works = [_Work(operands)]
        for level in range(1, self._options.max_kernels + 1):
            if works:
                works = self._level(works, level)
        self._database.close()
        return SearchResult(
            tuple(self._routes), tuple(self._levels), abstract.e_nodes, abstract.e_classes,
            self._is_complete,
        )  # fmt: skip

    def _draw(self, abstract: AbstractEGraph) -> tuple[tuple[Operand, ...], int]:
        """Return random inputs and the fingerprint of what the program computes of them."""
        small = self._structure.program
        (output,) = small.outputs
        for draw in range(_DRAWS):
            seed = self._options.seed + 97 * draw
            values = {
                name: self._arithmetic.draw([d.size for d in kind], seed + place)
                for place, (name, kind) in enumerate(small.inputs.items())
            }
            try:
                result = evaluate(small, values, self._arithmetic)[output]
            except Undefined:
                continue
            operands = tuple(
                Operand(
                    name, kind, Labelled(variables(kind), values[name]), abstract.classes[name],
                    1 << place,
                )
                for place, (name, kind) in enumerate(small.inputs.items())
            )  # fmt: skip
            return operands, fingerprint(Labelled(variables(kernel_tensors(small)[output]), result))
        raise InputError(f"{self._program.name}: a denominator is 0 whatever the inputs are")

    def _level(self, works: Sequence[_Work], level: int) -> list[_Work]:
        """Search the next kernel of all works; return the works of the level after it."""
        disable = self._options.disable
        search = BlockSearch(self._database, self._structure, self._arithmetic, disable)
        jobs = [self._job(work) for work in works]
        before_of = {id(job): work.before for job, work in zip(jobs, works, strict=True)}
        for job in jobs:
            search.add(job)
        self._grow(search)
        outputs = KernelOutputs(search, level)
        hits = outputs.with_value(self._target)
        for job in jobs:
            mine = [(c, term) for c, term in hits if search.configurations[c][0] is job]
            if mine:
                last = tuple(self._kernel(search, c, [t], self._program.outputs) for c, t in mine)
                self._routes += [
                    Route(self._program, (*before, last), self._program.outputs)
                    for before in before_of[id(job)]
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
        return list(self._next_works(search, outputs, before_of))

    def _job(self, work: _Work) -> Job:
        dims = [operand.dims for operand in work.operands]
        concatenate = self._options.concatenate
        found = configurations(dims, self._structure.known, concatenate=concatenate)
        return Job(work.operands, tuple(found))

    def _kernel(
        self, search: BlockSearch, config: int, terms: Sequence[int], names: Sequence[str]
    ) -> FoundKernel:
        return cheapest_kernel(search, config, terms, names, self._sizes)

    def _grow(self, search: BlockSearch) -> None:
        """Grow terms to the largest size, if the time lasts; a size that is not done is left out."""
        if self._watch.is_over:
            self._is_complete = False
            return
        guard = self._watch.guard(self._database.interrupt, None)
        try:
            with guard.watching():
                for size in range(self._options.max_operators + 1):
                    self._progress(len(self._levels) + 1, size, search.counts)
                    search.grow(size, self._options.max_operators)
        except Interrupted:
            self._database.resume()
            self._is_complete = False
            if guard.reason == "interrupted":
                self._watch.remember()

    def _next_works(
        self,
        search: BlockSearch,
        outputs: KernelOutputs,
        before_of: Mapping[int, tuple[tuple[tuple[FoundKernel, ...], ...], ...]],
    ) -> Iterator[_Work]:
        """Yield what the next kernel can load: what one kernel stores, and inputs that it takes with it."""
        useful = [tensor for tensor in outputs.tensors if tensor.value != self._target]
        pairs = [pair for pair in outputs.pairs() if all(tensor in useful for tensor in pair)]
        for chosen, given in needed_sets(
            self._database,
            [*((t,) for t in useful), *pairs],
            self._given,
            None if "reachability" in self._options.disable else self._root,
        ):
            before = tuple(self._ways(search, chosen, before_of))
            yield _Work((*(tensor.operand for tensor in chosen), *given), before)

    def _ways(
        self,
        search: BlockSearch,
        chosen: Sequence[KernelTensor],
        before_of: Mapping[int, tuple[tuple[tuple[FoundKernel, ...], ...], ...]],
    ) -> Iterator[tuple[tuple[FoundKernel, ...], ...]]:
        """Yield the ways to some tensors: kernels before, and what stores these, job by job."""
        names = [tensor.operand.name for tensor in chosen]
        made: dict[int, list[FoundKernel]] = {}
        for config in sorted(set.intersection(*(set(tensor.terms) for tensor in chosen))):
            job, _ = search.configurations[config]
            terms = [tensor.terms[config] for tensor in chosen]
            made.setdefault(id(job), []).append(self._kernel(search, config, terms, names))
        for job_id, kernels in made.items():
            for before in before_of[job_id]:
                yield (*before, tuple(kernels))


def _silent(level: int, size: int, counts: SearchCounts) -> None:
    """Report nothing."""


def _without_classes(abstract: AbstractEGraph) -> AbstractEGraph:
    """Return an abstract e-graph of one class: every expression is a part of the program's."""
    abstract.database.run("mugraph/forget_classes")
    classes = dict.fromkeys(abstract.classes, 1)
    return replace(abstract, classes=classes, outputs=(1,) * len(abstract.outputs))
