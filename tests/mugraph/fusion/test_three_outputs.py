"""``run --fuse`` with kernels of three values and more: queries, keys and values of one input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, Result, kernels, optimize
from relational_tensat.formats import load_model, save_model
from relational_tensat.mugraph.fusion.candidates import chain_candidates, region_candidates
from relational_tensat.mugraph.fusion.kernel_builder import computes_nodes, kernel_rule
from relational_tensat.rules.backends.backend import know_kernels
from relational_tensat.tensor import Graph

ROWS, COLUMNS = 8, 16
NAMES = ("q", "k", "v")


def projections() -> Graph:
    """Queries, keys and values, of which one goes on through a function."""
    b = GraphBuilder("projections")
    x = b.input("x", ROWS, COLUMNS)
    q, k, v = (b.op("matmul", x, b.weight(name, COLUMNS, COLUMNS)) for name in NAMES)
    return b.build(b.op("tanh", q), k, v)


def options(**more: object) -> Options:
    return Options.of(cost="t4", fuse=True, fuse_operators=4, iterations=2, verify_runs=1, **more)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A folder with the model, what became of it, and its kernels; and the result."""
    folder = tmp_path_factory.mktemp("projections")
    save_model(projections(), folder / "in.onnx")
    return folder, optimize(folder / "in.onnx", options(kernels=folder / "kernels"))


def test_three_products_of_one_value_are_one_kernel(run: tuple[Path, Result]) -> None:
    folder, result = run
    assert result.graph.count_ops() == {"fused": 1}
    assert result.fusion is not None
    assert [(used.launches, used.results) for used in result.fusion.used] == [(1, 3)]
    assert result.optimal
    assert result.verification.runs
    plain = optimize(folder / "in.onnx", Options.of(cost="t4", iterations=2, verify_runs=1))
    launch_us = 5.0
    assert result.cost_after_us < 1.05 * launch_us  # weighed once, not for each value
    assert result.cost_after_us < plain.cost_after_us


def test_the_loader_gives_all_results(run: tuple[Path, Result]) -> None:
    folder, result = run
    ((_, kernel),) = kernels.load(folder / "kernels", "numpy").items()
    (node,) = result.graph.nodes
    draw = np.random.default_rng(0).standard_normal
    arrays = {name: draw(result.graph.types[name].shape).astype(np.float32) for name in node.inputs}
    q, k, v = (arrays["x"] @ arrays[name] for name in NAMES)
    results = dict(zip(node.outputs, kernel(*arrays.values()), strict=True))
    for value, wanted in zip(result.graph.outputs, (np.tanh(q), k, v), strict=True):
        np.testing.assert_allclose(results[value], wanted, rtol=1e-4, atol=1e-5)


def gates(count: int) -> Graph:
    """A function of one value, times others."""
    b = GraphBuilder("gates")
    x = b.input("x", ROWS, COLUMNS)
    made = [b.op("mul", b.op("tanh", x), b.input(f"g{n}", ROWS, COLUMNS)) for n in range(count)]
    weight = b.weight("w", COLUMNS, COLUMNS)
    return b.build(*(b.op("matmul", one, weight) for one in made))


def test_chains_that_read_the_same_are_one_with_as_many_values() -> None:
    know_kernels()
    candidates = list(chain_candidates(gates(4)))
    assert {len(c.outputs) for c in candidates} == {2, 3, 4}
    for candidate in candidates:
        rule = kernel_rule(candidate, "k0", "fused-k0")
        assert len(rule.sources) == len(candidate.outputs)
        operators = {node.op for node in candidate.nodes}
        assert rule.symmetric == (operators == {"mul"})  # one order of values that are alike


def test_groups_of_a_block_compute_what_their_nodes_do() -> None:
    inputs = Path(__file__).resolve().parents[3] / "bench" / "inputs"
    graph = load_model(inputs / "transformer_block.onnx")
    threes = [c for c in region_candidates(graph, 8) if len(c.outputs) == 3]
    assert any(c.has_products for c in threes)
    assert all(computes_nodes(candidate, 3) for candidate in threes)
    rules = [kernel_rule(candidate, "k0", "fused-k0") for candidate in threes]
    assert {rule.symmetric for rule in rules} == {True, False}
