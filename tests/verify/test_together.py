"""Graphs put together compute what they compute alone, and what they share only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.tensor import Array, Graph, Node, Weight, build_graph
from relational_tensat.verify import verify
from relational_tensat.verify.drawing import random_inputs
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.together import put_together
from tests.graphs import f32, shared_matmuls, weight


def variant(original: Graph, nodes: Sequence[Node], outputs: Sequence[str] = ("y",)) -> Graph:
    return build_graph("v", original.inputs, original.weights, nodes, outputs)


def layered(n_layers: int, **act: str) -> Graph:
    """Return a chain of products and activations."""
    nodes = []
    for k in range(n_layers):
        nodes.append(Node("matmul", (f"h{k}", f"w{k}"), (f"m{k}",)))
        nodes.append(Node(act.get(f"at{k}", "tanh"), (f"m{k}",), (f"h{k + 1}",)))
    weights = {f"w{k}": weight(4, 4, seed=k) for k in range(n_layers)}
    return build_graph("layers", {"h0": f32(2, 4)}, weights, nodes, [f"h{n_layers}"])


def data_of(graph: Graph) -> dict[str, Array]:
    return {name: w.data for name, w in graph.weights.items() if w.data is not None}


def test_what_is_equal_is_computed_once_and_all_else_twice() -> None:
    original = layered(5)
    other = replace(layered(5, at3="sigmoid"), weights=original.weights)
    together = put_together(original, other)
    ops = [node.op for node in together.graph.nodes]
    assert len(ops) == 10 + 3  # the sigmoid, and what comes after it
    assert ops.count("sigmoid") == 1
    inputs = random_inputs(original, 0)
    alone = [compute_outputs(graph, inputs, data_of(original)) for graph in (original, other)]
    for ours, expected in zip(together.compute(inputs, data_of(original)), alone, strict=True):
        np.testing.assert_array_equal(ours[0], expected[0])
    assert not np.array_equal(alone[0][0], alone[1][0])


def test_an_equal_graph_adds_nothing_but_is_still_returned() -> None:
    original = layered(3)
    names = {f"m{k}": f"product{k}" for k in range(3)}
    nodes = [
        replace(
            node,
            inputs=tuple(names.get(name, name) for name in node.inputs),
            outputs=tuple(names.get(name, name) for name in node.outputs),
        )
        for node in original.nodes
    ]
    renamed = variant(original, nodes, original.outputs)
    together = put_together(original, renamed)
    assert together.graph.nodes == original.nodes
    assert together.counts == (1, 1)
    assert len(together.compute(random_inputs(original, 0), data_of(original))) == 2


def test_factors_of_a_product_of_weights_that_the_original_applies_are_applied_once() -> None:
    weights = {name: weight(16, 16, seed=seed) for seed, name in enumerate("uv")}
    nodes = [Node("matmul", ("x", "u"), ("h",)), Node("matmul", ("h", "v"), ("y",))]
    original = build_graph("g", {"x": f32(2, 16)}, weights, nodes, ["h", "y"])
    inputs = random_inputs(original, 0)
    for factors, n_new in (("uv", 0), ("vu", 2)):  # the other way round it is something else
        product = Node("matmul", tuple(factors), ("p",))
        changed = [product, nodes[0], Node("matmul", ("x", "p"), ("y",))]
        other = variant(original, changed, original.outputs)
        together = put_together(original, other)
        assert together.taken_apart == 1
        assert together.graph.nodes[:2] == original.nodes
        assert len(together.graph.nodes) == 2 + n_new
        values = together.compute(inputs, data_of(original))
        for ours, graph in zip(values, (original, other), strict=True):
            for array, expected in zip(
                ours, compute_outputs(graph, inputs, data_of(original)), strict=True
            ):
                np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-12)
        assert np.allclose(values[0][1], values[1][1]) == (n_new == 0)


@pytest.mark.parametrize("values", [(0.0, -0.0), (1.0, 1.0 + 1e-15)])
def test_attributes_are_equal_only_to_the_last_bit(values: tuple[float, float]) -> None:
    x = {"x": f32(4)}
    one, other = (
        build_graph("g", x, {}, [Node("smul", ("x",), ("y",), {"value": value})], ["y"])
        for value in values
    )
    assert len(put_together(one, other).graph.nodes) == 2


def test_a_folded_weight_is_not_the_value_or_weight_that_it_is_named_like() -> None:
    nodes = [
        Node("smul", ("w1",), ("v",), {"value": 2.0}),
        Node("matmul", ("x", "v"), ("y",)),
    ]
    original = variant(shared_matmuls(with_data=True), nodes)
    folded = fold_weights(original)
    assert set(folded.weights) == {"v"}  # what the original computes has the same name
    swapped = replace(folded, weights={"v": Weight(f32(64, 64), np.ones((64, 64), np.float32))})
    inputs = random_inputs(original, 0)
    for graph in (folded, swapped):
        together = put_together(original, original, graph)
        values = together.compute(inputs, data_of(together.graph))
        alone = compute_outputs(graph, inputs, data_of(graph))
        np.testing.assert_array_equal(values[2][0], alone[0])
        assert np.allclose(values[0][0], values[2][0], rtol=1e-5) == (graph is folded)
    # a weight under its own name, with other data
    other = variant(original, [Node("matmul", ("x", "w1"), ("y",))])
    ones = replace(other, weights={"w1": Weight(f32(64, 64), np.ones((64, 64), np.float32))})
    together = put_together(other, other, ones)
    values = together.compute(inputs, data_of(together.graph))
    np.testing.assert_allclose(values[2][0], inputs["x"].astype(float) @ np.ones((64, 64)))


def test_a_wrong_fold_is_found() -> None:
    original = shared_matmuls(with_data=True)
    assert verify(original, original, folded=replace(original, name="folded")).ok
    weights = dict(original.weights)
    weights["w1"] = Weight(f32(64, 64), np.zeros((64, 64), np.float32))
    outcome = verify(original, original, folded=replace(original, weights=weights))
    assert not outcome.ok
    assert "own weights as folded" in outcome.failure()


def test_a_weight_that_the_original_does_not_have_is_refused() -> None:
    original = layered(2)
    other = replace(original, weights={**original.weights, "v": weight(4, 4)})
    with pytest.raises(VerificationError, match=r"the original has no weight 'v' of type float32"):
        put_together(original, other)


def test_nodes_come_when_they_are_needed() -> None:
    original = layered(4)
    nodes: list[Node] = []
    for k in range(4):
        nodes.append(Node("smul", (f"w{k}",), (f"u{k}",), {"value": 1.0}))
        nodes.append(Node("matmul", (f"h{k}", f"u{k}"), (f"p{k}",)))
        nodes.append(Node("tanh", (f"p{k}",), (f"h{k + 1}",)))
    other = build_graph("o", original.inputs, original.weights, nodes, ["h4"])
    order = put_together(original, other).graph.nodes
    assert [node for node in order if node in original.nodes] == list(original.nodes)
    seen = {*original.inputs, *original.weights}
    places = {}
    for place, node in enumerate(order):
        assert seen.issuperset(node.inputs)
        seen.update(node.outputs)
        places[node.outputs[0]] = place
    # a weight of the last layer is not scaled before the last layer is there
    assert places["u3"] > places["h2"]
