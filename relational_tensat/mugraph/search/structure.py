"""Structural sizes and configurations: which variable is split by the grid and by the loop, not how often.

A search needs no more than that a variable is split, so each split is by the smallest number. A variable
that is summed has a prime of its own where there are enough, so that abstract sums over different
variables differ and prune more; it keeps at least two elements in every tile, so that no sum is of one
element by chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, variables
from relational_tensat.mugraph.graph.mugraph import AXES, MuGraph, Operation
from relational_tensat.mugraph.graph.operators import names

_PRIMES = (2, 3)
_FREE_SIZE, _FREE_FACTOR = 4, 2


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
class Configuration:
    """Which variables the grid splits, in order of its axes, and which one the loop traverses."""

    grid: tuple[Variable, ...]
    loop: Variable | None

    def splits(self, variable: Variable) -> int:
        """Return how many times a variable is split."""
        return (variable in self.grid) + (variable == self.loop)

    @property
    def iterations(self) -> int:
        """The number of iterations of the loop; 1 for no loop."""
        return self.loop.factor if self.loop else 1


def structural_variables(program: MuGraph) -> tuple[Variable, ...]:
    """Return the index variables of a program with structural sizes.

    Raises:
        InputError: it has operators that are no relabelling, or too many variables.
    """
    summed: dict[str, None] = {}
    for step in program.steps:
        if not isinstance(step, Operation) or step.op in ("split", "merge", "rename", "repeat"):
            raise InputError(f"{program.name}: expected operators on index variables as they are")
        summed.update(dict.fromkeys(names(step.attrs, "over") if "over" in step.attrs else ()))
    found = dict.fromkeys(v for dims in program.inputs.values() for v in variables(dims))
    if len(found) > 40:
        raise InputError(f"{program.name}: {len(found)} index variables, expected 40 at most")
    primes = dict(zip(summed, itertools.cycle(_PRIMES), strict=False))
    return tuple(
        Variable(name, 1 << place, primes[name] ** 3, primes[name], True)
        if name in summed
        else Variable(name, 1 << place, _FREE_SIZE, _FREE_FACTOR, False)
        for place, name in enumerate(found)
    )


def resized(program: MuGraph, sizes: Mapping[str, int]) -> MuGraph:
    """Return the same program with other sizes of its index variables."""
    return replace(
        program, inputs={name: _resized(dims, sizes) for name, dims in program.inputs.items()}
    )


def configurations(
    inputs: Sequence[Dims], known: Mapping[str, Variable]
) -> Iterator[Configuration]:
    """Yield the configurations of blocks with these inputs.

    Args:
        inputs: their dims.
        known: the variables by name.
    """
    present = [known[name] for name in dict.fromkeys(v for d in inputs for v in variables(d))]
    for axes in range(len(AXES) + 1):
        for grid in itertools.combinations(present, axes):
            for loop in (None, *present):
                configuration = Configuration(grid, loop)
                if all(v.tile(configuration.splits(v)) for v in present):
                    yield configuration


def _resized(dims: Dims, sizes: Mapping[str, int]) -> Dims:
    return tuple(Dim(dim.variable, sizes[dim.variable]) for dim in dims)
