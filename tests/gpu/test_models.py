"""Whole graphs on the double: the 13 models, and random ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.models import MODELS
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.tensor import Graph
from relational_tensat.verify.fold import fold_weights
from tests.gpu.random_graphs import graphs_of_views
from tests.gpu.runs import check
from tests.gpu.small_models import small_model


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    graph = fold_weights(small_model(name))
    check(graph)
    plan = plan_graph(graph)
    assert plan.total_bytes <= 1.1 * plan.least_bytes


@settings(max_examples=80)
@given(graphs_of_views(), st.integers(0, 3))
def test_random_graphs(graph: Graph, seed: int) -> None:
    check(graph, seed=seed, runs=2)
