"""A backend of one's own is described once, rules, kernels, price and time; runs use it by its name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relational_tensat import Options, load_model, load_profile, optimize
from relational_tensat.base.errors import UsageError
from relational_tensat.cli.main import main
from relational_tensat.cost import graph_cost_us
from relational_tensat.rules.backends.backend import Backend
from relational_tensat.rules.backends.fused_kernel import FusedKernel, FusedPart
from relational_tensat.rules.backends.names import BACKENDS
from relational_tensat.tensor import Attrs, Graph, Node, build_graph
from relational_tensat.tensor.operators.base import Types
from relational_tensat.tensor.operators.registry import unregister
from tests.tensor.operators.test_matmul import f32

RULES = """
(rule toy-relu-of-sum
  (law "relu(x + y) is one kernel")
  (from (relu (add ?x ?y)))
  (to (toy_relu_of_sum ?x ?y)))
"""


class ReluOfSum(FusedKernel):
    """relu(x + y)."""

    name = "toy_relu_of_sum"
    arity = (2, 2)

    def parts(self, inputs: Types, attrs: Attrs) -> list[FusedPart]:
        return [FusedPart("add", (0, 1)), FusedPart("relu", (2,))]


@pytest.fixture(autouse=True)
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    rules = tmp_path / "toy.rules"
    rules.write_text(RULES, encoding="utf-8")
    toy = Backend("toy", [ReluOfSum], lambda here: ("t4", "the toy"), "cpu", own_rules=rules)
    monkeypatch.setitem(BACKENDS, "toy", toy)
    yield
    unregister(ReluOfSum.name)


def two_sums() -> Graph:
    """relu(relu(x + y) + y), with one relu too many."""
    nodes = [
        Node("add", ("x", "y"), ("a",)),
        Node("relu", ("a",), ("b",)),
        Node("relu", ("b",), ("c",)),
        Node("add", ("c", "y"), ("d",)),
        Node("relu", ("d",), ("z",)),
    ]
    return build_graph("g", {"x": f32(64, 64), "y": f32(64, 64)}, {}, nodes, ["z"])


@pytest.mark.parametrize(
    "options", [{"runs_on": "toy", "effort": "low"}, {"backend": "toy", "cost": "t4"}]
)
def test_a_run_is_priced_by_its_kernels_and_written_as_what_it_makes_them_of(
    tmp_path: Path, options: dict[str, str]
) -> None:
    result = optimize(two_sums(), Options.of(**options), output=tmp_path / "o.json")
    profile, kernel = load_profile("t4"), Node("relu", ("x",), ("k",))
    one_us = graph_cost_us(build_graph("k", {"x": f32(64, 64)}, {}, [kernel], ["k"]), profile)
    assert result.cost_after_us < result.cost_before_us
    assert result.cost_after_us < 3 * one_us  # two kernels of two operands, not four operators
    assert load_model(tmp_path / "o.json").count_ops() == {"add": 2, "relu": 2}
    assert result.verification is not None and result.verification.ok


def test_it_is_named_where_places_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"expected onnxruntime, cuda, toy, .*did you mean 'toy'"):
        optimize(two_sums(), Options.of(runs_on="tuy"))
    assert main(["run", "--help-all"]) == 0
    assert "onnxruntime, cuda, toy" in capsys.readouterr().out
