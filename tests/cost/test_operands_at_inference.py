"""Operands that are computed at inference although kernels usually arrange them before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from relational_tensat import load_profile
from relational_tensat.cost import Configuration, CostSource, as_source, graph_cost_us
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.key import (
    as_constants,
    configuration_text,
    graph_configurations,
    parse_configuration,
)
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.egraph import EGraph
from relational_tensat.explain.explanation import explain
from relational_tensat.explore import explore
from relational_tensat.extract.tables import extraction_problem
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.uses import count_inference_ops
from tests.cost.fakes import FakeDevice
from tests.egraph.extraction import cheapest_graph
from tests.graphs import f32, weight

_WINDOW = {"stride": (1, 1), "pad": "same"}
RULE = load_rules(only=("scale-before-biased-convolution",))


def squeezed() -> Graph:
    """Return what a gate of channels scales before a convolution: the gate may go into its filters."""
    return build_graph(
        "squeezed",
        {"x": f32(1, 64, 14, 14), "gate": f32(1, 64, 1, 1)},
        {"w": weight(64, 64, 1, 1), "b": weight(64)},
        [
            Node("mul", ("x", "gate"), ("s",)),
            Node("conv", ("s", "w", "b"), ("y",), _WINDOW),
        ],
        ["y"],
    )


def residual() -> Graph:
    """Return the same between convolutions, in the middle of a residual block."""
    return build_graph(
        "residual",
        {"x": f32(1, 64, 28, 28), "gate": f32(1, 64, 1, 1)},
        {"w0": weight(64, 64, 3, 3), "w": weight(64, 64, 3, 3, seed=1), "b": weight(64)},
        [
            Node("conv", ("x", "w0"), ("a",), _WINDOW),
            Node("mul", ("a", "gate"), ("s",)),
            Node("conv", ("s", "w", "b"), ("c",), _WINDOW),
            Node("add", ("c", "a"), ("d",)),
            Node("conv", ("d", "w0"), ("y",), _WINDOW),
        ],
        ["y"],
    )


def product(right: str) -> Graph:
    """Return a product by a matrix that is a weight, computed, or unpacked of a weight."""
    weights = {"w": weight(32, 8), "small": Weight(TensorType("int8", (32, 8))), "unit": weight()}
    nodes = {
        "w": [],
        "computed": [Node("add", ("z", "w"), ("computed",))],
        "unpacked": [Node("dequantize", ("small", "unit"), ("unpacked",))],
    }
    return build_graph(
        "product",
        {"x": f32(4, 32), "z": f32(32, 8)},
        weights,
        [*nodes[right], Node("matmul", ("x", right), ("y",))],
        ["y"],
    )


def slow_where_computed(configuration: Configuration) -> float:
    """Return what operators take on a processor that arranges filters: far more where it cannot."""
    return {"mul": 10.0, "conv": 100.0}.get(configuration.op, 1.0) * (
        1 + len(configuration.computed)
    )


def measured(folder: Path) -> MeasuredSource:
    device = FakeDevice(time_us=slow_where_computed)
    return MeasuredSource("cpu", device, CostCache(folder / "costs.duckdb"))


def on_target() -> CostSource:
    target = load_backend("onnxruntime")
    return BackendCosts(as_source(load_profile("cpu")), target, target.rules(has_fixed_shapes=True))


def test_a_gate_stays_before_its_convolution_where_computed_filters_cost_more(
    tmp_path: Path,
) -> None:
    def scaled(cost: CostSource, graph: Graph, rules: Sequence[Rule] = ()) -> tuple[int, ...]:
        with closing(EGraph.create(graph)) as egraph:
            explore(egraph, [*RULE, *rules])
            graph = cheapest_graph(egraph, cost)
            (gate,) = (node for node in graph.nodes if node.op == "mul")
            return graph.types[gate.outputs[0]].shape  # type: ignore[union-attr]

    profile = as_source(load_profile("t4"))
    assert scaled(profile, squeezed())[-2:] == (1, 1)  # the filters: fewer elements
    assert scaled(measured(tmp_path), squeezed()) == (1, 64, 14, 14)
    rules = load_backend("onnxruntime").rules(has_fixed_shapes=True)
    assert scaled(profile, residual())[-2:] == (3, 3)
    assert scaled(on_target(), residual(), rules) == (1, 64, 28, 28)


def test_the_sums_of_problem_graph_and_explanation_agree(tmp_path: Path) -> None:
    cost = measured(tmp_path)
    with closing(EGraph.create(squeezed())) as egraph:
        explore(egraph, RULE)
        problem = extraction_problem(egraph, cost).problem
        costly = problem.cost_us.copy()
        names = [row[0] for row in egraph.connection.execute(
            "SELECT op FROM enode_text WHERE rule = 'original' AND op = 'mul'"
        ).fetchall()]  # fmt: skip
        assert names == ["mul"]
        computed = egraph.connection.execute(
            "SELECT e.op, k.cost_us, c.cost_us FROM computed_operands AS o "
            "JOIN computed_cost AS k USING (signature, computed) JOIN cost AS c USING (signature) "
            "JOIN enode_text AS e ON e.id = o.enode"
        ).fetchall()
        ((op, own_us, constant_us),) = computed
        assert op == "conv"
        assert own_us > constant_us
        assert own_us in costly.tolist()
        assert constant_us in costly.tolist()
        egraph.connection.execute(  # as if nothing but the product with the filters could be had
            "INSERT INTO computed_cost SELECT signature, computed, 0.5, 'mine' FROM computed_operands"
        )
        egraph.connection.execute("DELETE FROM computed_cost WHERE source <> 'mine'")
        graph = cheapest_graph(egraph, cost)
        assert count_inference_ops(graph)["reshape"] > 0
        explanation = explain(egraph.connection)
        assert explanation.cost_after_us == pytest.approx(graph_cost_us(graph, cost) - own_us + 0.5)


def test_rows_of_ones_own_hold_whatever_is_computed(tmp_path: Path) -> None:
    with closing(EGraph.create(squeezed())) as egraph:
        explore(egraph, RULE)
        egraph.connection.execute(
            "INSERT INTO cost SELECT s.id, 1.5, 'mine' FROM signature AS s "
            "JOIN symbol AS y ON y.id = s.symbol WHERE y.op = 'conv'"
        )
        problem = extraction_problem(egraph, measured(tmp_path)).problem
    assert sorted(cost for cost in problem.cost_us.tolist() if cost in (1.5, 100.0, 200.0)) == [
        1.5,
        1.5,
    ]


def test_what_is_unpacked_of_constants_is_computed() -> None:
    computed = {
        right: [
            each.computed for each in graph_configurations(product(right)) if each.op == "matmul"
        ]
        for right in ("w", "computed", "unpacked")
    }
    assert computed == {"w": [()], "computed": [(1,)], "unpacked": [(1,)]}


def test_a_configuration_has_it_in_its_text_and_is_measured_with_it() -> None:
    (configuration,) = (e for e in graph_configurations(product("computed")) if e.op == "matmul")
    text = configuration_text(configuration)
    assert text.endswith('"layout":"row-major","computed":[1]}')
    assert parse_configuration(text) == configuration != as_constants(configuration)
    assert "computed" not in configuration_text(as_constants(configuration))
    assert not make_probe(configuration, 1).with_operator.weights
    assert make_probe(as_constants(configuration), 1).with_operator.weights


def test_costs_that_do_not_tell_are_asked_for_one_of_both(tmp_path: Path) -> None:
    source = as_source(load_profile("cpu"))
    (configuration,) = (e for e in graph_configurations(product("computed")) if e.op == "matmul")
    answers = source.ask([configuration, as_constants(configuration)])
    assert len(set(answers.values())) == 1
    assert source.counts.estimated == 1
