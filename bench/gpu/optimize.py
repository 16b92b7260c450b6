"""One model of ``python -m bench gpu``, optimized for the GPU by one set of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache

from bench.gpu import configurations as record
from relational_tensat.cost import CostSource, graph_cost_us
from relational_tensat.cost.device import Configuration
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.extract import ExtractionOptions, extract
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.cuda.kernel_choice import kernels_of
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import Graph

#: The set with the rules of the backend ``cuda``: what is chosen are the kernels that run.
KERNELS = "kernels"


def _rules_with_kernels() -> Sequence[Rule]:
    backend = load_backend("cuda")
    shipped = (rule for rule in load_rules() if rule.name not in backend.left_out)
    return [*backend.rules(has_fixed_shapes=True), *shipped]


#: Sets of rules by name: TENSAT's as they are, unsound ones included, those that ship, and with kernels.
RULE_SETS: dict[str, Callable[[], Sequence[Rule]]] = {
    "tensat": cache(taso_rules),
    "ours": cache(load_rules),
    KERNELS: cache(_rules_with_kernels),
}


@dataclass(frozen=True, slots=True)
class Optimized:
    """What became of a model.

    Attributes:
        modelled_us: sum of its kernels' measured times.
        optimal: whether no graph of the e-graph is cheaper.
    """

    graph: Graph
    modelled_us: float
    e_nodes: int
    optimal: bool


def optimize_for(
    graph: Graph,
    rules: str,
    source: MeasuredSource,
    *,
    k_multi: int,
    until_s: float,
    extract_time_limit_s: float,
) -> Optimized | None:
    """Explore a model's rewritings, measure their kernels, extract the cheapest graph.

    Args:
        rules: one of ``RULE_SETS``.
        until_s: the time of ``time.perf_counter`` until which kernels are measured.

    Returns:
        None where time was up before all kernels were measured; those that were are in the cache.
    """
    rule_set, limits = (
        RULE_SETS[rules](),
        ExplorationOptions(multi_iterations=k_multi, time_limit_s=None),
    )
    costs = _costs(rules, source)
    configurations = record.egraph_configurations(graph, rule_set, limits)
    if rules == KERNELS:
        kernels = (kernel for each in configurations for kernel in kernels_of(each))
        configurations = list(dict.fromkeys(kernels))
    if not measure_all(source, configurations, until_s):
        return None
    with closing(EGraph.create(graph)) as egraph:
        explore(egraph, rule_set, limits)
        table = extraction_problem(egraph, costs)
        extraction = extract(table.problem, ExtractionOptions(time_limit_s=extract_time_limit_s))
        choose(egraph, table, extraction.choice)
        result = costs.as_timed(chosen_graph(egraph))
        e_nodes, _ = egraph.counts()
    return Optimized(result, graph_cost_us(result, costs), e_nodes, extraction.optimal)


def _costs(rules: str, source: MeasuredSource) -> CostSource:
    """Return what kernels cost; of the operators that they do at once, what these kernels do."""
    if rules != KERNELS:
        return source
    backend = load_backend("cuda")
    return BackendCosts(source, backend, backend.rules(has_fixed_shapes=True))


def measure_all(
    source: MeasuredSource, configurations: Sequence[Configuration], until_s: float
) -> bool:
    """Measure configurations until a time; return whether all of them have been."""
    timed = [configuration for configuration in configurations if not source.is_free(configuration)]
    measured_count = 0
    for count in record.record(source, timed, until_s):
        measured_count = count
    return measured_count == len(timed)
