"""Random weights keep the values of a graph at about 1."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.tensor import Attrs, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.operators.samples import ADDED_SCALE
from relational_tensat.verify.evaluate import SeededWeights, evaluate_graph, random_inputs
from relational_tensat.verify.random_values import weight_scales


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


def test_inputs_that_cannot_be_drawn_are_named() -> None:
    for dtype, reason in (("opaque:IgYKBAoCCAE=", "is no tensor, and"), ("string", "is string[2]")):
        graph = build_graph(
            "g", {"s": TensorType(dtype, (2,) if dtype == "string" else ())}, {}, [], ["s"]
        )
        with pytest.raises(InputError) as error:
            random_inputs(graph, 0)
        assert str(error.value).startswith(f"the input 's' {reason}")


def size(array: object) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(array, np.float64)))))


def linear_attention(layers: int) -> Graph:
    """Attention without softmax or normalization: cubic in its input, layer after layer."""
    nodes, weights = [], {}
    for k in range(layers):
        for letter in "qkvo":
            weights[f"{letter}w{k}"] = Weight(f32(16, 16))
        nodes += [
            *(Node("matmul", (f"t{k}", f"{letter}w{k}"), (f"{letter}{k}",)) for letter in "qkv"),
            Node("transpose", (f"k{k}",), (f"kt{k}",), {"perm": (1, 0)}),
            Node("matmul", (f"q{k}", f"kt{k}"), (f"s{k}",)),
            Node("matmul", (f"s{k}", f"v{k}"), (f"a{k}",)),
            Node("matmul", (f"a{k}", f"ow{k}"), (f"p{k}",)),
            Node("add", (f"t{k}", f"p{k}"), (f"t{k + 1}",)),
        ]
    return build_graph("attention", {"t0": f32(16, 16)}, weights, nodes, [f"t{layers}"])


def plain(layers: int) -> Graph:
    """Convolutions with biases and relu: what the input says must not drown in the biases."""
    nodes: list[Node] = []
    weights: dict[str, Weight] = {}
    for k in range(layers):
        weights |= {f"w{k}": Weight(f32(8, 8, 3, 3)), f"b{k}": Weight(f32(8))}
        attrs: Attrs = {"stride": (1, 1), "pad": "same", "act": "relu"}
        nodes.append(Node("conv", (f"x{k}", f"w{k}", f"b{k}"), (f"x{k + 1}",), attrs))
    return build_graph("plain", {"x0": f32(1, 8, 8, 8)}, weights, nodes, [f"x{layers}"])


@pytest.mark.parametrize("graph", [linear_attention(40), plain(20)], ids=["attention", "plain"])
@pytest.mark.parametrize("seed", [0, 1])
def test_deep_graphs_neither_explode_nor_ignore_their_input(graph: Graph, seed: int) -> None:
    weights = SeededWeights(graph, seed)
    first, second = (
        evaluate_graph(graph, random_inputs(graph, k), weights)[graph.outputs[0]] for k in (1, 2)
    )
    assert 1e-3 < size(first) < 1e3
    assert size(first - second) > 1e-3 * size(first)


def test_every_layer_of_attention_matters() -> None:
    graph = linear_attention(10)
    weights, inputs = SeededWeights(graph, 0), random_inputs(graph, 0)
    whole = evaluate_graph(graph, inputs, weights)["t10"]
    for k in (0, 9):
        without = {**weights, f"vw{k}": np.zeros((16, 16))}
        difference = size(evaluate_graph(graph, inputs, without)["t10"] - whole)
        assert difference > 1e-4 * size(whole)


def test_weights_undo_the_size_of_what_they_multiply() -> None:
    nodes = [
        Node("smul", ("x",), ("big",), {"value": 100.0}),
        Node("transpose", ("w",), ("wt",), {"perm": (1, 0)}),
        Node("matmul", ("big", "wt", "b"), ("y",)),
        Node("matmul", ("u", "v"), ("z",)),
    ]
    weights = {
        "w": Weight(f32(9, 4)),
        "b": Weight(f32(9)),
        "u": Weight(f32(2, 16)),
        "v": Weight(f32(16, 2)),
        "unused": Weight(f32(1)),
    }
    graph = build_graph("g", {"x": f32(3, 4)}, weights, nodes, ["y", "z"])
    scales = weight_scales(graph)
    assert scales["w"] == pytest.approx(1 / (100 * 2))
    assert scales["b"] == ADDED_SCALE
    assert scales["u"] * scales["v"] * 4 == pytest.approx(1)
    assert scales["unused"] == 1


def test_shared_weights_have_one_scale() -> None:
    nodes = [
        Node("matmul", ("x", "w"), ("a",)),
        Node("smul", ("a",), ("b",), {"value": 3.0}),
        Node("matmul", ("b", "w"), ("y",)),
    ]
    graph = build_graph("g", {"x": f32(4, 4)}, {"w": Weight(f32(4, 4))}, nodes, ["y"])
    assert weight_scales(graph) == {"w": 0.5}


def test_single_numbers_count_as_they_are() -> None:
    nodes = [Node("mul", ("x", "eight"), ("a",)), Node("matmul", ("a", "w"), ("y",))]
    weights = {"eight": Weight(f32(), np.array(8, np.float32)), "w": Weight(f32(4, 4))}
    graph = build_graph("g", {"x": f32(4, 4)}, weights, nodes, ["y"])
    assert weight_scales(graph)["w"] == pytest.approx(1 / 16)


def test_constants_of_zero_do_not_divide() -> None:
    zero = Node("fill", (), ("zero",), {"value": 0.0, "dtype": "float32", "shape": (4, 4)})
    nodes = [zero, Node("mul", ("x", "zero"), ("a",)), Node("matmul", ("a", "w"), ("y",))]
    graph = build_graph("g", {"x": f32(4, 4)}, {"w": Weight(f32(4, 4))}, nodes, ["y"])
    assert np.isfinite(weight_scales(graph)["w"])
