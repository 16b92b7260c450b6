"""The cheapest graphs that really differ: in the families of rules that made them.

A cheapest graph without some family of rules is the cheapest of the e-graph without the e-nodes that it
made. Forbidding in turn each family of the cheapest graph, and so on from those, finds the graphs in order
of cost, one for each set of families (Lawler 1972, "A procedure for computing the k best solutions to
discrete optimization problems", with families in place of variables).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from relational_tensat.extract.problem import (
    Extraction,
    ExtractionProblem,
    Ints,
    dag_cost_us,
    topological_order,
)
from relational_tensat.extract.tables import ORIGINAL

#: Graphs whose costs are closer than this, as a fraction, are alike.
_DIFFERENT = 1e-3


@dataclass(frozen=True, eq=False)
class FamilyChoice:
    """A cheapest choice without some families.

    Attributes:
        choice: per class, its e-node.
        cost_us: its cost.
        families: which families made its e-nodes.
        without: those that it was to do without.
    """

    choice: Ints
    cost_us: float
    families: frozenset[int]
    without: frozenset[int]


def cheapest_by_family(
    problem: ExtractionProblem,
    family: NDArray[np.int32],
    first: Ints,
    solve: Callable[[ExtractionProblem], Extraction],
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[FamilyChoice]:
    """Yield choices in order of cost, which differ in families and in cost; the first is the cheapest.

    A family is only avoided where a graph can do without: the original graph's e-nodes always can be had.

    Args:
        family: per e-node, the number of the family that made it, or ``ORIGINAL``.
        first: a cheapest choice.
        solve: returns a cheapest choice of a problem.
        is_over: whether to look for no more.
    """
    penalty_us = 10.0 * float(problem.cost_us.sum()) + 1.0
    cheapest_us = dag_cost_us(problem, first)
    found_us = -math.inf
    forbidden: set[frozenset[int]] = {frozenset()}
    count = 0
    waiting = [_entry(problem, family, first, frozenset(), count)]
    while waiting:
        _, _, one = heapq.heappop(waiting)
        if one.cost_us > found_us + _DIFFERENT * cheapest_us:
            found_us = one.cost_us
            yield one
        for each in sorted(one.families):
            without = one.without | {each}
            if without in forbidden:
                continue
            if is_over():
                return
            forbidden.add(without)
            is_forbidden = np.isin(family, list(without))
            cost_us = np.where(is_forbidden, problem.cost_us + penalty_us, problem.cost_us)
            extraction = solve(replace(problem, cost_us=cost_us))
            count += 1
            entry = _entry(problem, family, extraction.choice, without, count)
            if not entry[2].families & without:
                heapq.heappush(waiting, entry)


def _entry(
    problem: ExtractionProblem,
    family: NDArray[np.int32],
    choice: Ints,
    without: frozenset[int],
    count: int,
) -> tuple[float, int, FamilyChoice]:
    """Return a choice with what it is ordered by: cost, then age."""
    cost_us = dag_cost_us(problem, choice)
    used = family[choice[topological_order(problem, choice)]]
    families = frozenset(used[used != ORIGINAL].tolist())
    return cost_us, count, FamilyChoice(choice, cost_us, families, without)
