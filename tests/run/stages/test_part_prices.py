"""Prices of parts in one e-graph: those that each has alone."""

from __future__ import annotations

import pytest

from relational_tensat.cost import graph_cost_us
from relational_tensat.cost.analytic import AnalyticSource
from relational_tensat.cost.profile_file import load_profile
from relational_tensat.custom_ops.part_calls import graph_of
from relational_tensat.mugraph.fusion.candidates import chain_candidates, region_candidates
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.run.stages.part_prices import prices_us
from tests.custom_ops.fused_files import normed


def test_parts_beside_each_other_cost_as_much_as_alone() -> None:
    """A part that another contains has its own price, and a weight of two parts is of both."""
    graph = normed(3, 5)
    candidates = [*chain_candidates(graph), *region_candidates(graph, 8, fewest_steps=1)]
    parts = [graph_of(place, place.nodes) for place in candidates]
    parts += parts[:1]
    backend = load_backend("onnxruntime")
    kernels = AnalyticSource(load_profile("cpu"))
    rules = backend.rules(has_fixed_shapes=True)
    joined = prices_us(parts, BackendCosts(kernels, backend, rules))
    alone = BackendCosts(kernels, backend, rules)
    assert joined == pytest.approx([graph_cost_us(part, alone) for part in parts])
    assert len(set(joined)) > 1 and min(joined) > 0
