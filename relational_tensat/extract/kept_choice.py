"""The cheapest choice so far, kept while the e-graph grows under it.

E-nodes are never removed, only merged with equal ones, and filtered. So a choice stays a graph that the
e-graph represents: each of its e-nodes is found again by its signature and its children's classes of
today. Where two classes of the choice were united, the e-node that stood lower in the choice stands for
both. Its own operands stood lower still, so no cycle arises, and no e-node is added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel, CostSource, as_source
from relational_tensat.cost.source import ABOUT
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.members import Seed, choice_of
from relational_tensat.extract.cost_table import ask_for_chosen, forget_costs
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.few_measurements import chosen_enodes
from relational_tensat.extract.greedy.bottom_up import DagDeriver
from relational_tensat.extract.problem import Extraction, Ints
from relational_tensat.extract.tables import TableProblem, enodes_in_order, extraction_problem


@dataclass(frozen=True, slots=True)
class ExtractionEntry:
    """An extraction, and what the cheapest graph costs since; a row of the table ``extraction_log``.

    Attributes:
        iteration: after which of exploration.
        cost_us: of the graph that it found.
        best_us: of the cheapest graph that the run has found until then, the original included.
        bound_us: no graph of the e-graph of that time costs less (0: nothing is known).
        optimal: whether the graph found was proven to be the cheapest of that e-graph.
        seconds: wall seconds, making the problem included.
        final: whether it came after exploration, and not in between.
    """

    iteration: int
    cost_us: float
    best_us: float
    bound_us: float
    optimal: bool
    seconds: float
    final: bool


class ExtractionProgress(Protocol):
    """Is called as extractions proceed; a run's ``Progress`` is one."""

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        """The solver has a better graph or a better bound; both in µs, infinite while unknown."""

    def extracted(self, entry: ExtractionEntry) -> None:
        """An extraction between two iterations of exploration has ended."""


class KeptChoice:
    """A choice of an e-graph, in the table ``kept_choice``.

    Attributes:
        cost_us: its cost when it was found; never more since.
        iteration: after which it was found.
    """

    def __init__(self, egraph: EGraph, cost_us: float, iteration: int) -> None:
        """Continue with the choice that is in the table."""
        self._egraph = egraph
        self.cost_us = cost_us
        self.iteration = iteration

    @classmethod
    def keep(cls, egraph: EGraph, seed: Seed, iteration: int) -> KeptChoice:
        """Keep a graph that was found, in place of what was kept before."""
        egraph.database.run("extract/forget_choice")
        egraph.database.run("extract/keep_choice", ids=list(seed.enodes))
        return cls(egraph, seed.cost_us, iteration)

    def start(self, table: TableProblem) -> Ints:
        """Return an acyclic choice of the e-graph as it is now that holds to this one.

        It costs no more than this one, unless the cycle filter has taken an e-node of this one out
        of the problem: then that is derived from others.
        """
        ids = [row[0] for row in self._egraph.database.run("extract/kept_choice")]
        is_kept = np.isin(table.enodes, ids)
        problem = table.problem
        return DagDeriver(problem).derive(np.where(is_kept, 0.0, problem.cost_us))

    def restore(self) -> None:
        """Write the choice into the table ``chosen``, filtered e-nodes included."""
        rows = self._egraph.database.run("extract/kept_choice")
        choice = choice_of(rows, self._egraph.find(self._egraph.root))
        self._egraph.database.execute("DELETE FROM chosen", name="restore")
        self._egraph.database.append("chosen", sorted(choice.items()))


def seed_of(table: TableProblem, extraction: Extraction) -> Seed:
    """Return the graph that an extraction found."""
    return Seed(extraction.cost_us, enodes_in_order(table, extraction.choice))


def cheapest_by_profile(
    egraph: EGraph,
    cost: CostModel,
    options: ExtractionOptions,
    process: ProcessOptions,
    watch: Watch,
) -> Seed | None:
    """Return the cheapest graph by the profile alone, and measure its kernels before any others.

    None where costs are not measured, or are a profile's anyway.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice, or while measuring.
        NoSolutionError: the root has no acyclic derivation.
    """
    if not as_source(cost).is_lazy:
        return None
    forget_costs(egraph)
    table = extraction_problem(egraph, cost, CostSource.modelled)
    with watch.watching():
        within = watch.within(options.time_limit_s)
        extraction = extract(table.problem, options, process, watch=within)
    with watch.final():
        enodes = chosen_enodes(table, extraction.choice)
        ask_for_chosen(egraph, cost, enodes, ABOUT)
    forget_costs(egraph)
    return seed_of(table, extraction)
