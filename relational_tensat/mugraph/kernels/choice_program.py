"""Choices that cost together: variables of few values, tables of costs, limits; solved by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import NoSolutionError
from relational_tensat.extract.exact.solve.constraints import (
    Columns,
    Rows,
    rows_of_lists,
    stack_rows,
)
from relational_tensat.extract.exact.solve.search import SolverOptions
from relational_tensat.extract.exact.solve.solver import solve_mip

Costs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CostTable:
    """The common cost of some variables.

    Attributes:
        variables: which.
        costs: an axis for each, at its value.
    """

    variables: tuple[int, ...]
    costs: Costs


@dataclass(frozen=True, eq=False)
class Limit:
    """A sum that may not be too large.

    Attributes:
        terms: of each variable, at its value.
        most: the largest sum that is allowed.
    """

    terms: Mapping[int, Sequence[int]]
    most: int


@dataclass(frozen=True, eq=False)
class CostedChoices:
    """An integer program.

    Attributes:
        sizes: how many values each variable has.
        tables, limits: the costs to minimise, and the limits to keep.
    """

    sizes: tuple[int, ...]
    tables: tuple[CostTable, ...]
    limits: tuple[Limit, ...] = ()

    def cost(self, values: Sequence[int]) -> int:
        """Return what a choice costs."""
        picked = (table.costs[tuple(values[v] for v in table.variables)] for table in self.tables)
        return sum(map(int, picked))

    @property
    def combinations(self) -> int:
        """How many choices there are."""
        return math.prod(self.sizes)


@dataclass(frozen=True, slots=True)
class ChoiceSolution:
    """The cheapest choice.

    Attributes:
        values: of the variables.
        cost: of it.
        bound: HiGHS proved that no solution costs less; the cost itself if the proof is complete.
    """

    values: tuple[int, ...]
    cost: int
    bound: int


def solve(choices: CostedChoices) -> ChoiceSolution:
    """Return the cheapest choice.

    A column for each value of each variable, of which one is chosen; a column for each entry of a table of
    several variables. Sums of the entries along an axis are the columns of that axis' variable, so that
    they are 0 or 1 wherever those are.

    Raises:
        NoSolutionError: no choice keeps within the limits.
    """
    program = _Program(choices)
    result = solve_mip(program.columns(), program.rows(), SolverOptions())
    if result.values is None:
        raise NoSolutionError("no choice keeps within the limits")
    values = tuple(
        int(np.argmax(result.values[start : start + size]))
        for start, size in zip(program.starts, choices.sizes, strict=True)
    )
    cost = choices.cost(values)
    bound = cost if result.proven else math.ceil(result.bound + program.least - _ROUNDING)
    return ChoiceSolution(values, cost, min(cost, bound))


#: The most by which a bound of whole numbers may be too large.
_ROUNDING = 1e-4


class _Program:
    """The integer program; costs are without ``least``, the part of each table that all choices cost."""

    def __init__(self, choices: CostedChoices) -> None:
        self._choices = choices
        sizes = choices.sizes
        self.least = sum(int(table.costs.min()) for table in choices.tables)
        self.starts = [int(start) for start in np.cumsum([0, *sizes])[:-1]]
        self._costs = [np.zeros(sum(sizes))]
        self._equal: list[tuple[list[int], list[float]]] = []
        self._end = sum(sizes)
        for table in choices.tables:
            self._add(table)

    def _add(self, table: CostTable) -> None:
        costs = (table.costs - table.costs.min()).astype(np.float64)
        if len(table.variables) == 1:
            (variable,) = table.variables
            start = self.starts[variable]
            self._costs[0][start : start + len(costs)] += costs
            return
        places = np.arange(table.costs.size).reshape(table.costs.shape) + self._end
        for axis, variable in enumerate(table.variables):
            for value, entries in enumerate(np.moveaxis(places, axis, 0)):
                mine = entries.ravel().tolist()
                own = self.starts[variable] + value
                self._equal.append(([*mine, own], [*([1.0] * len(mine)), -1.0]))
        self._costs.append(costs.ravel())
        self._end += table.costs.size

    def columns(self) -> Columns:
        """Return the columns; those of tables are whole where the others are."""
        integer = np.zeros(self._end, np.bool_)
        integer[: len(self._costs[0])] = True
        return Columns(
            np.concatenate(self._costs), np.zeros(self._end), np.ones(self._end), integer
        )

    def rows(self) -> Rows:
        pairs = zip(self.starts, self._choices.sizes, strict=True)
        one = [(list(range(s, s + size)), [1.0] * size) for s, size in pairs]
        blocks = [rows_of_lists(one, 1.0, 1.0), rows_of_lists(self._equal, 0.0, 0.0)]
        for limit in self._choices.limits:
            columns = [
                (self.starts[v] + value, float(term))
                for v, terms in limit.terms.items()
                for value, term in enumerate(terms)
            ]
            row = [c for c, _ in columns], [term for _, term in columns]
            blocks.append(rows_of_lists([row], -np.inf, float(limit.most)))
        return stack_rows(blocks)
