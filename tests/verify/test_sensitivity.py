"""What rounding alone explains: weights that are sizes are none of it."""

from __future__ import annotations

import numpy as np
from onnx import helper

from relational_tensat.formats import from_onnx_model
from relational_tensat.verify.comparison import Comparison, Setting
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.sensitivity import excuse_rounding
from tests.formats.onnx_tools import constant, model, tensor


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
