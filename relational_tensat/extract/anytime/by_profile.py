"""The cheapest graph by a profile alone, which runs with measured costs begin from."""

from __future__ import annotations

from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.cost import CostModel, CostSource, as_source
from relational_tensat.cost.source import ABOUT
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.members import Seed
from relational_tensat.extract.anytime.kept import seed_of
from relational_tensat.extract.cost_table import ask_for_chosen, forget_costs
from relational_tensat.extract.extraction import extract
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.extract.few_measurements import chosen_enodes
from relational_tensat.extract.tables import extraction_problem


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
