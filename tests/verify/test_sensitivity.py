"""What rounding alone explains: weights that are sizes are none of it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from relational_tensat.formats import from_onnx_model
from relational_tensat.tensor import Graph
from relational_tensat.verify.comparison import Comparison, Setting
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.sensitivity import excuse_rounding, moved_by_rounding
from tests.formats.onnx_tools import constant, model, tensor
from tests.quantized_models import Quantized


def test_a_factor_of_resize_stays_as_it_is() -> None:
    """Its next number would make another size, which does not fit what is beside it."""
    scales = constant("scales", np.array([1, 1, 2, 2]), np.float32)
    nodes = [
        helper.make_node("Resize", ["x", "", "scales"], ["r"], mode="nearest", nearest_mode="floor",
                         coordinate_transformation_mode="asymmetric"),
        helper.make_node("Concat", ["r", "z"], ["y"], axis=1),
    ]  # fmt: skip
    inputs = [tensor("x", [5, 2, 3, 3]), tensor("z", [5, 1, 6, 6])]
    graph = from_onnx_model(model(nodes, inputs, [tensor("y", [5, 3, 6, 6])], [scales]))
    weights = {name: np.asarray(weight.data) for name, weight in graph.weights.items()}
    random = np.random.default_rng(0)
    values = {name: random.normal(size=kind.shape) for name, kind in graph.inputs.items()}
    (expected,) = compute_outputs(graph, values, weights)
    comparison = Comparison(Setting("a check"), ["y"], graph.output_types(), 1e-6)
    comparison.add([expected], [expected + 1.0])
    for seed in range(5):
        excuse_rounding(comparison, graph, values, weights, seed)
        assert not comparison.ok


def quantized(layers: int) -> Graph:
    """Products between quantized values, in steps of 0.05."""
    build = Quantized()
    value = "x"
    for layer in range(layers):
        value = build.pair(value)
        value = build.node("MatMul", [value, build.weight(f"w{layer}", 16, 16)], f"p{layer}")
    value = build.pair(value)
    return from_onnx_model(build.model({"x": [8, 16]}, {value: [8, 16]}))


@pytest.mark.parametrize("layers", [1, 3])
def test_behind_a_quantization_rounding_moves_by_steps(layers: int) -> None:
    """Inner layers count: nothing smaller than a step comes through from outside."""
    graph = quantized(layers)
    weights = {name: np.asarray(weight.data) for name, weight in graph.weights.items()}
    random = np.random.default_rng(1)
    steps = 0.0
    for seed in range(8):
        values = {"x": random.normal(size=(8, 16))}
        (expected,) = compute_outputs(graph, values, weights)
        (moved,) = moved_by_rounding(graph, values, weights, seed)
        number = moved * float(np.abs(expected).max()) / 0.05
        assert abs(number - round(number)) < 1e-6
        steps = max(steps, number)
    assert (layers == 1 and steps < 1.5) or (layers == 3 and 1 <= steps <= 8)


def test_an_error_of_several_steps_is_not_excused_by_one() -> None:
    graph = quantized(1)
    weights = {name: np.asarray(weight.data) for name, weight in graph.weights.items()}
    values = {"x": np.random.default_rng(1).normal(size=(8, 16))}
    (expected,) = compute_outputs(graph, values, weights)
    comparison = Comparison(Setting("a check"), ["y"], graph.output_types(), 1e-3)
    comparison.add([expected], [expected + np.where(np.arange(16) == 3, 0.05 * 3, 0.0)])
    excuse_rounding(comparison, graph, values, weights, 0)
    assert not comparison.ok


def test_what_is_smooth_is_moved_as_far_as_its_slope_says() -> None:
    """The slow way: each input, one by one, as far off as it may be."""
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Mul", ["s", "x"], ["y"])]
    graph = from_onnx_model(model(nodes, [tensor("x", [4])], [tensor("y", [4])]))
    x = np.array([1.0, -2.0, 3.0, 0.1])
    (moved,) = moved_by_rounding(graph, {"x": x}, {}, 0)
    worst = float(np.abs(3 * x**2 * x).max() * 32 * 2.0**-24 / np.abs(x**3).max())
    assert 0.5 * worst <= moved <= 2.1 * worst
