"""The unit that all costs of an e-graph are multiples of, where there is one.

Counts of gates, areas and latencies are whole numbers: what is cheaper is cheaper by a unit, so a bound
that is above all but the best multiple proves the best, and what is beyond the last multiple below it is in
no cheaper choice. Measured times have no such unit.
"""

from __future__ import annotations

import numpy as np

from relational_tensat.extract.problem import ExtractionProblem
from relational_tensat.extract.techniques import Gain, Technique, declare

UNITS = declare(
    Technique(
        "units",
        "round bounds up to a cost that there can be",
        earns_on=Gain("expressions-01", "simplex_iterations"),
    )
)

_LARGEST = 2.0**40
"""Costs above this are not counted in units: their sums would not be exact."""

_MOST_UNITS = 1e6
"""A unit smaller than this fraction of a cost is too small for what solvers tolerate."""

_SLACK = 1e-3
"""By how much of a unit a bound may be wrong: solvers' tolerances, and what sums of floats lose."""


def cost_unit_us(problem: ExtractionProblem) -> float:
    """Return the largest number that all costs are multiples of; 0 where they are not whole numbers."""
    costs = np.abs(problem.cost_us)
    if not len(costs) or costs.max() > _LARGEST or np.any(costs != np.round(costs)):
        return 0.0
    return float(np.gcd.reduce(costs.astype(np.int64)))


def next_multiple(bound_us: float, unit_us: float, cost_us: float) -> float:
    """Return the least multiple of a unit that a bound allows; the bound where there is no unit.

    Args:
        bound_us: a bound.
        unit_us: what all costs are multiples of, or 0.
        cost_us: the best known: whether the unit is large enough to be told apart from it.
    """
    if not is_counted(unit_us, cost_us):
        return bound_us
    return max(bound_us, float(np.ceil(bound_us / unit_us - _SLACK)) * unit_us)


def cheaper_below(cost_us: float, unit_us: float) -> float:
    """Return what every cheaper choice costs less than: the cost itself where there is no unit."""
    return cost_us - (1.0 - _SLACK) * unit_us if is_counted(unit_us, cost_us) else cost_us


def is_counted(unit_us: float, cost_us: float) -> bool:
    """Return whether there is a unit, and one that costs like this can be told apart by."""
    return unit_us > 0.0 and abs(cost_us) <= _MOST_UNITS * unit_us
