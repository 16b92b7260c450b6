from __future__ import annotations

import pytest

from bench.models import GraphBuilder
from bench.taso.search import Outcome, backtrack
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import taso_rules
from relational_tensat.tensor import Graph
from relational_tensat.verify import verify
from tests.bench.taso.small_graphs import GRAPHS, products, shared_left

_PROFILE = load_profile("tensat_t4")


def _search(graph: Graph, **options: float) -> Outcome:
    return backtrack(graph, taso_rules(), _PROFILE, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("alpha", [1.0, 1.05])
def test_the_result_is_checked_and_costs_what_is_reported(name: str, alpha: float) -> None:
    graph = GRAPHS[name]()
    result = _search(graph, alpha=alpha, budget=30)
    assert result.cost_us == pytest.approx(graph_cost_us(result.graph, _PROFILE))
    assert result.cost_us <= graph_cost_us(graph, _PROFILE)
    assert verify(graph, result.graph, runs=1).failure() == ""


def test_products_of_one_input_become_one() -> None:
    result = _search(shared_left(3), budget=50)
    assert result.graph.count_ops()["matmul"] == 1
    assert result.stop_reason == "exhausted"


def test_alpha_lets_it_pass_through_dearer_graphs() -> None:
    """tanh and sigmoid change places for nothing, one kernel more is in between: a hill to climb."""
    rules = parse_rules(
        """(rule up (law "x") (from (tanh ?x)) (to (identity (sigmoid ?x))))
        (rule down (law "x") (from (relu (identity (sigmoid ?x)))) (to (sigmoid ?x)))""",
        "hill.rules",
    )
    build = GraphBuilder("hill")
    value = build.input("x", 2, 2)
    for _ in range(3):
        value = build.op("relu", build.op("tanh", value))
    graph = build.build(value)
    stuck = backtrack(graph, rules, _PROFILE, alpha=1.0, budget=50)
    through = backtrack(graph, rules, _PROFILE, alpha=2.0, budget=50)
    assert stuck.cost_us == pytest.approx(graph_cost_us(graph, _PROFILE))
    assert through.cost_us < stuck.cost_us
    assert through.graph.count_ops() == {"sigmoid": 3}


def test_a_shorter_search_is_the_first_part_of_a_longer() -> None:
    longer = _search(shared_left(4), alpha=1.2, budget=20, moments_at=(3, 10))  # type: ignore[arg-type]
    for budget in (3, 10, 20):
        shorter = _search(shared_left(4), alpha=1.2, budget=budget)
        reached = longer.after(budget)
        assert reached is not None
        assert (reached.rewritten, reached.best_us) == (budget, shorter.cost_us)
        assert longer.found_at(budget).rewritten == shorter.found_at().rewritten
    assert longer.after(15) is None  # nobody asked


def test_time_is_over_at_once_and_the_original_is_there() -> None:
    graph = products()
    result = _search(graph, budget=10, time_limit_s=0.0)
    assert result.stop_reason == "time"
    assert result.cost_us == pytest.approx(graph_cost_us(graph, _PROFILE))
    assert result.after(10) is None


def test_no_graph_is_queued_twice() -> None:
    result = _search(shared_left(3), alpha=1.05, budget=500)
    again = _search(shared_left(3), alpha=1.05, budget=500)
    assert result.stop_reason == "exhausted"
    assert result.moments[-1].rewritten == result.queued == again.queued
