"""A choice that is kept while the e-graph grows under it: still whole, acyclic, and no costlier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relational_tensat.cost import CostModel, graph_cost_us
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, Observer, explore
from relational_tensat.extract import ExtractionOptions, dag_cost_us, extract, is_acyclic
from relational_tensat.extract.kept_choice import KeptChoice, seed_of
from relational_tensat.extract.tables import TableProblem, chosen_graph, extraction_problem
from relational_tensat.tensor import Graph
from relational_tensat.verify import verify
from tests.egraph.extraction import FlatCost
from tests.explore.example_rules import example_rules
from tests.explore.graphs import mixed, product_of_its_factor, sum_of
from tests.graphs import fan_of_matmuls, shared_matmuls

PRODUCTS = FlatCost(by_operator={"matmul": 5.0, "concat": 0.0, "split": 0.5})
SUMS = FlatCost(by_operator={"mul": 4.0, "sub": 9.0, "neg": 0.0, "add": 2.0})

CASES: dict[str, tuple[Callable[[], Graph], CostModel, str]] = {
    "shared": (shared_matmuls, PRODUCTS, "efficient"),
    "mixed": (mixed, SUMS, "efficient"),
    "mixed, cyclic": (mixed, SUMS, "none"),
    "sum, cyclic": (lambda: sum_of(4), FlatCost(), "none"),
    "own factor": (lambda: product_of_its_factor(2), PRODUCTS, "efficient"),
    "fan, cyclic": (lambda: fan_of_matmuls(3), PRODUCTS, "none"),
}


def problem_of(egraph: EGraph, cost: CostModel) -> TableProblem:
    egraph.catalogue.flush(egraph.database)
    return extraction_problem(egraph, cost)


def assert_restored(egraph: EGraph, kept: KeptChoice, cost: CostModel) -> Graph:
    """Check that the kept choice is a graph that costs no more than it did; return the graph."""
    kept.restore()
    graph = chosen_graph(egraph)
    assert graph_cost_us(graph, cost) <= kept.cost_us * (1 + 1e-9)
    return graph


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept_is_found_again_after_each_iteration(name: str) -> None:
    build, cost, cycle_filter = CASES[name]
    egraph = EGraph.create(build())
    kept: list[KeptChoice] = []

    def after(iteration: int) -> None:
        table = problem_of(egraph, cost)
        filtered = egraph.database.execute("SELECT count(*) FROM enode WHERE filtered")[0][0]
        if kept:
            start = kept[-1].start(table)
            assert is_acyclic(table.problem, start)
            if not filtered:
                assert dag_cost_us(table.problem, start) <= kept[-1].cost_us * (1 + 1e-9)
            assert_restored(egraph, kept[-1], cost)
        kept.append(
            KeptChoice.keep(
                egraph,
                seed_of(table, extract(table.problem, ExtractionOptions("greedy-dag"))),
                iteration,
            )
        )

    limits = ExplorationOptions(4, multi_iterations=3, node_limit=150, cycle_filter=cycle_filter)
    explore(egraph, example_rules(), limits, observer=Observer(after=after))
    assert kept
    last = assert_restored(egraph, kept[-1], cost)
    assert not verify(egraph.graph, last, runs=1).failure()


def test_merged_and_filtered_e_nodes_are_found_again() -> None:
    """x - x and relu(relu(x)) merge with others; the e-nodes chosen then are filtered by hand."""
    egraph = EGraph.create(mixed())
    cost = FlatCost()
    table = problem_of(egraph, cost)
    extraction = extract(table.problem)
    kept = KeptChoice.keep(egraph, seed_of(table, extraction), 0)
    explore(egraph, example_rules(), ExplorationOptions(3, node_limit=300))
    egraph.database.execute("UPDATE enode SET filtered = true WHERE iteration = 0 AND c0 > 0")
    graph = assert_restored(egraph, kept, cost)
    assert not verify(egraph.graph, graph, runs=1).failure()


def test_an_e_node_that_is_filtered_is_replaced_in_the_start() -> None:
    egraph = EGraph.create(shared_matmuls())
    cost = FlatCost(by_operator={"relu": 1.0})
    explore(egraph, example_rules("twice"), ExplorationOptions(2))
    table = problem_of(egraph, cost)
    extraction = extract(table.problem)
    kept = KeptChoice.keep(egraph, seed_of(table, extraction), 1)
    whole = kept.start(table)
    assert np.array_equal(np.sort(whole), np.sort(extraction.choice))
    egraph.database.execute("UPDATE enode SET filtered = true WHERE rule > 0")
    smaller = problem_of(egraph, cost)
    start = kept.start(smaller)
    assert is_acyclic(smaller.problem, start)
