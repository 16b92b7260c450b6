"""What a search knows at any time: the best choice and the best bound, and who is notified of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from relational_tensat.extract.exact.solve.solver_options import Progress
from relational_tensat.extract.exact.solve.unit import cheaper_below, next_multiple
from relational_tensat.extract.problem import ExtractionProblem, Ints, dag_cost_us

EQUAL = 1e-9
"""Costs that differ by less than this fraction are the same cost."""


@dataclass
class Search:
    """The best choice of an e-graph so far and the best bound.

    Attributes:
        problem: the e-graph.
        best: the cheapest choice found; acyclic.
        progress: called with (cost, bound) in µs when one of them improves.
        bound_us: proven lower bound; by default, what no choice is below.
        notes: what happened, for the report.
        baseline_us: what a plain method found: an answer that costs more is a bug.
        unit_us: what all costs are multiples of; 0 where that is not known, or not used.
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
        """What every cheaper choice costs less than."""
        return cheaper_below(self.cost_us, self.unit_us)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self.cost_us, self.bound_us)
