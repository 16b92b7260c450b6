"""How far apart neighbouring values of quantized outputs are."""

from __future__ import annotations

import numpy as np

from relational_tensat.tensor import Node, TensorType, Weight, build_graph
from relational_tensat.verify.steps import relative_steps
from tests.graphs import f32


def test_an_output_behind_a_dequantization_has_steps_of_its_scale() -> None:
    scale = Weight(f32(), np.float32(0.5))
    zero = Weight(TensorType("uint8", ()), np.uint8(3))
    graph = build_graph(
        "quantized",
        {"x": f32(2, 3)},
        {"scale": scale, "zero": zero},
        [
            Node("quantize", ("x", "scale", "zero"), ("q",), {"dtype": "uint8"}),
            Node("dequantize", ("q", "scale", "zero"), ("d",)),
            Node("reshape", ("d",), ("y",), {"shape": (6,)}),
            Node("exp", ("d",), ("z",)),
        ],
        ["y", "z"],
    )
    weights = {"scale": scale.data, "zero": zero.data}
    outputs = [np.array([-4.0, 2.0, np.inf]), np.ones((2, 3))]
    assert relative_steps(graph, weights, outputs) == [0.5 / 4.0, 0.0]
