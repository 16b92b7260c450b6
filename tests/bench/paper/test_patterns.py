"""The papers' figures pay in a run as it is."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.paper.patterns import FIGURES, FOLDER
from relational_tensat import Options, load_model, optimize
from relational_tensat.base.deadline import counting_cpu_seconds
from relational_tensat.explore.strategies import saturation_then_focus
from tests.tiers import nightly

#: How many products and convolutions are left.
LEFT = {"fig2": 1, "fig8_3": 1, "fig9_2": 1, "fig9_3": 1, "fig10": 2}
CASES = [
    *((name, "t4") for name in ("fig2", "fig9_3", "fig10")),
    *(nightly(name, "t4") for name in ("fig8_3", "fig9_2")),
    *(nightly(name, cost) for name in LEFT for cost in ("a100", "h100", "h200", "tensat_t4")),
]


@pytest.mark.parametrize("name", FIGURES)
def test_the_files_are_what_is_built(name: str) -> None:
    shipped, built = load_model(FOLDER / f"{name}.json"), FIGURES[name]()
    assert shipped.nodes == built.nodes
    assert (shipped.types, shipped.outputs) == (built.types, built.outputs)


@pytest.mark.parametrize(("name", "cost"), CASES)
def test_what_shares_an_input_is_merged(
    name: str, cost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saturation_then_focus, "LEAST_S", 2.0)  # as it is; other tests have less
    with counting_cpu_seconds():  # however busy the machine is
        result = optimize(FOLDER / f"{name}.json", Options.of(cost=cost))
    assert result.cost_after_us < result.cost_before_us
    ops = Counter(node.op for node in result.graph.nodes)
    assert ops["matmul"] + ops["conv"] == LEFT[name]
