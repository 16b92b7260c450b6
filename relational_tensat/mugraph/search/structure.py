"""The task of a search: a program at structural sizes, its configurations, options and tables.

A configuration says which variables the grid and the loop split, not how often. A search needs no more,
so each split is by the smallest number. A variable that is summed has a prime of its own where there are
enough and tensors stay small. So abstract sums over different variables differ and prune more. It keeps
at least two elements in every tile, so that no sum is of one element by chance.

The tables may be kept in a file of DuckDB, so that a kernel can be asked for its rows.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import or_
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import sql
from relational_tensat.egraph.database import Database
from relational_tensat.mugraph.graph.dims import Dims, count, variables, with_sizes
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import AXES, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import content_hash, encoded
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.search.abstract_egraph import OPAQUE_REDUCTIONS

#: The largest ones first that leave all of a program's tensors within so many elements, or the last.
_PRIMES: tuple[tuple[int, ...], ...] = ((2, 3, 5), (2, 3), (2,))
_MOST_ELEMENTS = 1 << 14
_FREE_SIZE, _FREE_FACTOR = 4, 2
_MOST_VARIABLES = 30


@dataclass(frozen=True, slots=True)
class Variable:
    """An index variable of a structure.

    Attributes:
        bit: stands for it in sets.
        size: its structural size.
        factor: into how many parts a grid or a loop splits it.
        is_summed: whether some operator reduces it.
    """

    name: str
    bit: int
    size: int
    factor: int
    is_summed: bool

    def tile(self, splits: int) -> int:
        """Return its extent in a tile, split so many times; 0 where that is not possible."""
        size, rest = divmod(self.size, self.factor**splits)
        return 0 if rest or (self.is_summed and size < 2) else size


@dataclass(frozen=True, slots=True)
class BlockConfiguration:
    """The variables that the grid splits, in order of its axes, and the one that the loop traverses."""

    grid: tuple[Variable, ...]
    loop: Variable | None

    def splits(self, variable: Variable) -> int:
        """Return how many times a variable is split."""
        return (variable in self.grid) + (variable == self.loop)

    @property
    def iterations(self) -> int:
        """The number of iterations of the loop; 1 for no loop."""
        return self.loop.factor if self.loop else 1


def part_of(variable: str) -> str:
    """Return the variable that counts the partial results of blocks that a variable is split among."""
    return f"{variable}'"


@dataclass(frozen=True, slots=True)
class Summable:
    """Products of which inputs may be summed over a variable.

    Attributes:
        variable: its bit.
        op: ``sum``, or an opaque reduction.
        carriers: bits of the inputs that have the variable.
        inputs: bits of those of them that take part.
    """

    variable: int
    op: str
    carriers: int
    inputs: int


@dataclass(frozen=True, slots=True)
class Structure:
    """A program at structural sizes.

    Attributes:
        program: with these sizes.
        variables: its index variables, and those that count partial results.
        summable: the sets of variables that may be summed over.
    """

    program: MuGraph
    variables: tuple[Variable, ...]
    summable: tuple[Summable, ...]

    @property
    def known(self) -> dict[str, Variable]:
        """The variables by name."""
        return {variable.name: variable for variable in self.variables}


def structure_of(program: MuGraph) -> Structure:
    """Return the structure of a program.

    Raises:
        InputError: it has operators that are no relabelling, or too many variables.
    """
    given = _variables(program)
    parts = []
    for place, variable in enumerate(v for v in given if v.is_summed):
        bit = 1 << (len(given) + place)
        parts.append(Variable(part_of(variable.name), bit, variable.factor, variable.factor, True))
    small = resized(program, {v.name: v.size for v in given})
    return Structure(small, (*given, *parts), tuple(_summable(small, (*given, *parts))))


def _variables(program: MuGraph) -> tuple[Variable, ...]:
    summed: dict[str, None] = {}
    for step in program.steps:
        if not isinstance(step, Operation) or step.op in ("split", "merge", "rename", "repeat"):
            raise InputError(f"{program.name}: expected operators on index variables as they are")
        summed.update(dict.fromkeys(names(step.attrs, "over") if "over" in step.attrs else ()))
    found = dict.fromkeys(v for dims in program.inputs.values() for v in variables(dims))
    if len(found) > _MOST_VARIABLES:
        raise InputError(
            f"{program.name}: {len(found)} index variables, expected {_MOST_VARIABLES} at most"
        )
    tensors = kernel_tensors(program).values()
    for primes in _PRIMES:
        sized = _sized(found, dict(zip(summed, itertools.cycle(primes), strict=False)))
        sizes = {variable.name: variable.size for variable in sized}
        if max(count(with_sizes(dims, sizes)) for dims in tensors) <= _MOST_ELEMENTS:
            break
    return sized


def _sized(found: Iterable[str], primes: Mapping[str, int]) -> tuple[Variable, ...]:
    """Return variables at structural sizes, given the primes of those that are summed."""
    return tuple(
        Variable(name, 1 << place, primes[name] ** 3, primes[name], True)
        if name in primes
        else Variable(name, 1 << place, _FREE_SIZE, _FREE_FACTOR, False)
        for place, name in enumerate(found)
    )


def _summable(program: MuGraph, known: Sequence[Variable]) -> Iterator[Summable]:
    """Yield the sets that may be summed: those of the program, and unions of them.

    Moving a factor out of a sum, or a sum into one, leaves the inputs that have the variable as they are;
    adding two sums unites them. So no graph that equals the program by the laws of sums needs another sum:
    one over d of Q alone, say, where the program sums the products of Q and K, is not among its parts.
    """
    bits = {name: 1 << place for place, name in enumerate(program.inputs)}
    uses = dict(bits)
    sums: dict[tuple[str, str], set[int]] = {}
    for step in program.steps:
        assert isinstance(step, Operation)
        uses[step.output] = functools.reduce(or_, (uses[name] for name in step.operands))
        for variable in names(step.attrs, "over") if "over" in step.attrs else ():
            carriers = _carriers(program, bits, variable)
            op = step.op if step.op in OPAQUE_REDUCTIONS else "sum"
            sums.setdefault((variable, op), set()).add(uses[step.output] & carriers)
    for (variable, op), inputs in sums.items():
        closed = {functools.reduce(or_, some) for some in _subsets(sorted(inputs))}
        for known_variable in known:
            if known_variable.name in (variable, part_of(variable)):
                carriers = _carriers(program, bits, variable)
                for mask in sorted(closed):
                    yield Summable(known_variable.bit, op, carriers, mask)


def _carriers(program: MuGraph, bits: Mapping[str, int], variable: str) -> int:
    return sum(bits[name] for name, dims in program.inputs.items() if variable in variables(dims))


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return itertools.chain.from_iterable(
        itertools.combinations(items, size) for size in range(1, len(items) + 1)
    )


def resized(program: MuGraph, sizes: Mapping[str, int]) -> MuGraph:
    """Return the same program with other sizes of its index variables."""
    return replace(
        program, inputs={name: with_sizes(dims, sizes) for name, dims in program.inputs.items()}
    )


def configurations(
    inputs: Sequence[Dims], known: Mapping[str, Variable]
) -> Iterator[BlockConfiguration]:
    """Yield the configurations of blocks with these inputs: loops traverse what is summed.

    Args:
        inputs: their dims.
        known: the variables by name.
    """
    present = [known[name] for name in dict.fromkeys(v for d in inputs for v in variables(d))]
    loops = [None, *(v for v in present if v.is_summed)]
    for axes in range(len(AXES) + 1):
        for grid in itertools.combinations(present, axes):
            for loop in loops:
                configuration = BlockConfiguration(grid, loop)
                if all(v.tile(configuration.splits(v)) for v in present):
                    yield configuration


_OF_LEVELS = ("config", "extent", "term", "derivation")


class SearchTables:
    """The file; a search writes it while it goes on."""

    def __init__(self, path: Path) -> None:
        """Take a file that is not there yet.

        Raises:
            InputError: it is.
        """
        if path.exists():
            raise InputError(f"{path}: is there already; name another database")
        self._path = path
        self._is_begun = False

    def keep(self, database: Database, level: int, variables: Iterable[Variable]) -> None:
        """Keep the tables of a level.

        Args:
            database: of the search.
            level: of kernels, from 1 on.
            variables: all index variables.

        Raises:
            InputError: the file cannot be written.
        """
        if not self._is_begun:
            self._begin(database, variables)
        for table in _OF_LEVELS:
            text = f"SELECT {level}, * FROM {table}"
            self._kept.append(table, database.execute(text, name="mugraph/keep"))

    def _begin(self, database: Database, variables: Iterable[Variable]) -> None:
        self._kept = Database(self._path)  # errors are those of any database
        self._kept.script("mugraph/kept_tables")
        self._kept.append("variable", [(variable.bit, variable.name) for variable in variables])
        self._kept.append("abstract", database.execute("FROM abstract", name="mugraph/keep"))
        self._is_begun = True

    def begin_again(self) -> None:
        """Forget what was kept: another search follows."""
        self._path.unlink(missing_ok=True)
        self._is_begun = False

    def end(self) -> None:
        """Leave the file to others."""
        if self._is_begun:
            self._kept.close()

    def note(self, graph: MuGraph, cost_us: float) -> str:
        """Keep what was found; return its key."""
        key = f"k{content_hash(graph)}"
        database = Database(self._path, keep=True)
        try:
            database.execute_all(sql("schema/kernel_terms"), "schema/kernel_terms")
            database.append(
                "fused_kernel", [(key, cost_us, json.dumps(encoded(graph), ensure_ascii=False))]
            )
        finally:
            database.close()
        return key
