"""The state of a search: the best choice, the best bound, and the listeners that hear of them.

``SolverOptions`` say how long it may take. ``cost_unit_us`` finds the unit that all costs are multiples of,
where there is one. Counts of gates, areas and latencies are whole numbers: a cheaper choice is cheaper by a
unit. So a bound above all but the best multiple proves the best. An e-node beyond the last multiple below
it is in no cheaper choice. Measured times have no such unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from relational_tensat.base.watch import Watch
from relational_tensat.extract.problem import ExtractionProblem, Ints, dag_cost_us
from relational_tensat.extract.techniques import Technique, TechniqueGain, Techniques, declare

Progress = Callable[[float, float], None]


@dataclass
class WorkLimit:
    """The work of HiGHS in all runs that share it: exact counts, equal for equal inputs.

    Attributes:
        simplex_iterations: of all linear programs, those within integer programs included.
        branch_nodes: of all integer programs.
    """

    simplex_iterations: int = 0
    branch_nodes: int = 0


@dataclass(frozen=True)
class SolverOptions:
    """How long and with what HiGHS may work.

    Attributes:
        watch: when it must stop; shares Ctrl-C with the run's.
        threads: worker threads.
        seed: of its randomised heuristics.
        techniques: which reductions and cuts to use.
        work: counts what HiGHS does for all that share these options.
        cycles: how cycles are kept out of the integer programs of components, of ``ordering.WITHIN``.
        is_neighbourhood: whether most of a choice is fixed in what is searched.
    """

    watch: Watch = field(default_factory=Watch)
    threads: int = 1
    seed: int = 0
    techniques: Techniques = field(default_factory=Techniques)
    work: WorkLimit = field(default_factory=WorkLimit)
    cycles: str = "auto"
    is_neighbourhood: bool = False

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline, not negative."""
        return self.watch.seconds_left

    @property
    def exhausted(self) -> bool:
        """Whether the time is over or a stop was requested."""
        return self.watch.is_over

    def for_share(self, fraction: float) -> SolverOptions:
        """Return the same for a step that may take this fraction of the time that is left."""
        return replace(self, watch=self.watch.share(fraction))

    def check(self) -> None:
        """Go no further if the time is over.

        Raises:
            OutOfTimeError: it is, or someone wants to stop.
        """
        self.watch.check_time()


UNITS = declare(
    Technique(
        "units",
        "round bounds up to a cost that there can be",
        earns_on=TechniqueGain("expressions-01", "simplex_iterations"),
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
        unit_us: a number that divides all costs, or 0.
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


EQUAL = 1e-9
"""Costs that differ by less than this fraction are the same cost."""


@dataclass
class Search:
    """The best choice of an e-graph so far and the best bound.

    Attributes:
        problem: the e-graph.
        best: the cheapest choice found; acyclic.
        progress: called with (cost, bound) in µs when one of them improves.
        bound_us: proven lower bound; by default, one below all choices.
        notes: what happened, for the report.
        baseline_us: a plain method's cost: an answer that costs more is a bug.
        unit_us: a number that divides all costs; 0 if unknown, or not used.
    """

    problem: ExtractionProblem
    best: Ints
    progress: Progress | None = None
    bound_us: float = field(init=False)
    notes: list[str] = field(default_factory=list)
    baseline_us: float = math.inf
    unit_us: float = 0.0

    def __post_init__(self) -> None:
        self.cost_us = dag_cost_us(self.problem, self.best)
        self.bound_us = min(self.problem.least_cost_us, self.cost_us)
        self._report()

    def offer(self, choice: Ints) -> bool:
        """Take an acyclic choice if it is cheaper; return whether it was taken."""
        cost = dag_cost_us(self.problem, choice)
        if cost >= self.cost_us:
            return False
        self.best, self.cost_us = choice, cost
        self._report()
        return True

    def raise_bound(self, bound_us: float) -> None:
        """Take a proven bound if it is higher."""
        bound_us = min(next_multiple(bound_us, self.unit_us, self.cost_us), self.cost_us)
        if bound_us > self.bound_us:
            self.bound_us = bound_us
            self._report()

    @property
    def closed(self) -> bool:
        """Whether nothing cheaper exists."""
        return self.bound_us >= self.cost_us - EQUAL * abs(self.cost_us)

    @property
    def cheaper_below_us(self) -> float:
        """The cost that every cheaper choice stays below."""
        return cheaper_below(self.cost_us, self.unit_us)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.cost_us, self.bound_us)
