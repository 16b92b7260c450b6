"""The search: all kernels that compute a program, at structural sizes."""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.abstract.saturated import AbstractEGraph, saturated
from relational_tensat.mugraph.field.residues import Residues
from relational_tensat.mugraph.graph.dims import Dim, variables
from relational_tensat.mugraph.graph.evaluation import GRID, assemble, evaluate
from relational_tensat.mugraph.graph.labelled import Labelled
from relational_tensat.mugraph.graph.mugraph import MuGraph, Saver
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.search.block_search import (
    BlockSearch,
    Job,
    Operand,
    SearchCounts,
    fingerprint,
)
from relational_tensat.mugraph.search.deriving import cheapest_kernel
from relational_tensat.mugraph.search.found import FoundGraph, part_variable
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import (
    configurations,
    resized,
    structural_variables,
)
from relational_tensat.tensor.field import Undefined

#: Draws of inputs until no denominator is 0.
_DRAWS = 10


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found.

    Attributes:
        found: the graphs, each with kernels that compute the program at structural sizes.
        counts: how large the search was.
        abstract_e_nodes, abstract_e_classes: of the abstract e-graph.
        is_complete: whether it was ended by no limit but that of operators.
    """

    found: tuple[FoundGraph, ...]
    counts: SearchCounts
    abstract_e_nodes: int
    abstract_e_classes: int
    is_complete: bool


def search_kernels(
    program: MuGraph, options: SearchOptions | None = None, watch: Watch | None = None
) -> SearchResult:
    """Search kernels that compute a program.

    Args:
        program: of operators of libraries only, on index variables as they are.
        options: how far to go.
        watch: ends the search with what was found so far.

    Raises:
        InputError: the program is malformed, or has operators that no search knows.
    """
    options = options or SearchOptions()
    watch = watch or Watch()
    if options.time_limit_s is not None:
        watch = watch.within(options.time_limit_s)
    return _Search(program, options, watch).run()


class _Search:
    def __init__(self, program: MuGraph, options: SearchOptions, watch: Watch) -> None:
        self._program = program
        self._options = options
        self._watch = watch
        self._variables = structural_variables(program)
        self._small = resized(program, {v.name: v.size for v in self._variables})
        self._sizes = {dim.variable: dim.size for dims in program.inputs.values() for dim in dims}
        self._arithmetic = Residues(options.seed)

    def run(self) -> SearchResult:
        abstract = saturated(self._small)
        operands, target = self._operands(abstract)
        search = BlockSearch(abstract.database, self._variables, self._arithmetic)
        known = {variable.name: variable for variable in self._variables}
        dims = [operand.dims for operand in operands]
        search.add(Job(operands, tuple(configurations(dims, known))))
        is_complete = self._grow(search)
        found = [
            self._graph(search, term, config)
            for term, config, _ in search.outputs()
            if fingerprint(stored(search, term, config)) == target
        ]
        counts = (abstract.e_nodes, abstract.e_classes)
        return SearchResult(tuple(found), search.counts, *counts, is_complete)

    def _operands(self, abstract: AbstractEGraph) -> tuple[tuple[Operand, ...], int]:
        """Return random inputs and the fingerprint of what the program computes of them."""
        (output,) = self._small.outputs
        for draw in range(_DRAWS):
            values = {
                name: self._arithmetic.draw(
                    [d.size for d in dims], self._options.seed + 97 * draw + place
                )
                for place, (name, dims) in enumerate(self._small.inputs.items())
            }
            try:
                result = evaluate(self._small, values, self._arithmetic)[output]
            except Undefined:
                continue
            operands = tuple(
                Operand(name, dims, Labelled(variables(dims), values[name]), abstract.classes[name])
                for name, dims in self._small.inputs.items()
            )
            dims = kernel_tensors(self._small)[output]
            return operands, fingerprint(Labelled(variables(dims), result))
        raise Undefined

    def _grow(self, search: BlockSearch) -> bool:
        """Grow terms to the largest size; return whether nothing ended it before."""
        for size in range(self._options.max_operators + 1):
            if self._watch.is_over:
                return False
            search.grow(size, self._options.max_operators)
        return True

    def _graph(self, search: BlockSearch, term: int, config: int) -> FoundGraph:
        outputs = self._program.outputs
        kernel = cheapest_kernel(search, config, [term], outputs, self._sizes)
        return FoundGraph(self._program, (kernel,), outputs)


def stored(search: BlockSearch, term: int, config: int) -> Labelled:
    """Return the tensor in device memory that a term is when all blocks have stored it."""
    _, configuration = search.configurations[config]
    value = search.value(term)
    labels = [label for label in value.labels if label not in GRID]
    omap = tuple(v.name if v.name in labels else part_variable(v.name) for v in configuration.grid)
    names = dict.fromkeys([*labels, *omap])
    dims = tuple(Dim(name, 0) for name in names)  # assembling needs no sizes
    grid = [variable.factor for variable in configuration.grid]
    return assemble(value, Saver("", "", dims, omap), grid)
