"""Graphs put together compute what they compute alone, and what they share only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.tensor import Array, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify import verify
from relational_tensat.verify.fold import fold_weights
from relational_tensat.verify.outputs import compute_outputs
from relational_tensat.verify.random_values import SeededWeights, random_inputs
from relational_tensat.verify.together import apply_by_factors, put_together
from tests.graphs import f32, shared_matmuls, weight

SIZE = 32


def product(left: str, right: str, output: str, *bias: str, act: str = "none") -> Node:
    return Node("matmul", (left, right, *bias), (output,), {"act": act})


def graph_of(
    nodes: Sequence[Node], outputs: Sequence[str] = ("y",), *, dtype: str = "float32"
) -> Graph:
    kind = TensorType(dtype, (SIZE, SIZE))
    return build_graph(
        "products",
        {"x": TensorType(dtype, (2, SIZE)), "z": TensorType(dtype, (2, 3, SIZE))},
        {name: Weight(kind) for name in "abcde"} | {"row": Weight(TensorType(dtype, (SIZE,)))},
        nodes,
        outputs,
    )  # fmt: skip


def check(graph: Graph, n_products: int, *, fixed: Sequence[str] = ()) -> Graph:
    """Check how many products are taken apart, and that the values are what they were."""
    applied, count = apply_by_factors(graph, fixed)
    assert count == n_products
    inputs, weights = random_inputs(graph, 0), SeededWeights(graph, 0)
    plain, ours = (compute_outputs(variant, inputs, weights) for variant in (graph, applied))
    for expected, actual in zip(plain, ours, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    return applied


def rows_of_products(graph: Graph) -> list[int]:
    return [graph.types[node.outputs[0]].shape[-2] for node in graph.nodes if node.op == "matmul"]  # type: ignore[union-attr]


def test_a_chain_is_applied_from_the_left() -> None:
    nodes = [product("b", "c", "bc"), product("a", "bc", "abc"), product("x", "abc", "y")]
    applied = check(graph_of(nodes), 2)
    assert rows_of_products(applied) == [2, 2, 2]


def test_a_chain_that_was_multiplied_from_the_left_too() -> None:
    nodes = [product("a", "b", "ab"), product("ab", "c", "abc"), product("x", "abc", "y")]
    assert rows_of_products(check(graph_of(nodes), 2)) == [2, 2, 2]


def test_sums_of_products_and_what_the_last_product_adds() -> None:
    nodes = [
        product("b", "c", "bc", "d"),
        product("a", "bc", "abc", "e"),
        product("x", "abc", "y", "row", act="relu"),
    ]
    assert rows_of_products(check(graph_of(nodes), 2)) == [2] * 5


def test_what_several_read_is_applied_for_each_and_the_first_factor_once() -> None:
    nodes = [
        product("a", "b", "ab"),
        product("a", "c", "ac"),
        product("x", "ab", "p"),
        product("x", "ac", "q", act="tanh"),
        product("z", "ab", "r"),
    ]
    applied = check(graph_of(nodes, ["p", "q", "r"]), 2)
    assert len(applied.nodes) == 2 + 3  # x·a, z·a, and the products with b, c, b
    assert list(applied.types)[-1] == "r"


@pytest.mark.parametrize(
    ("nodes", "outputs"),
    [
        ([product("a", "b", "ab"), product("x", "ab", "y")], ["y", "ab"]),
        ([product("a", "b", "ab"), product("x", "ab", "y"), Node("relu", ("ab",), ("r",))], ["y", "r"]),
        ([product("a", "b", "ab", act="relu"), product("x", "ab", "y")], ["y"]),
        ([product("a", "b", "ab", "row"), product("x", "ab", "y")], ["y"]),
        ([product("a", "b", "ab"), product("ab", "c", "y")], ["y"]),
        ([product("a", "b", "ab"), product("c", "ab", "y", "ab")], ["y"]),
        ([product("a", "b", "ab"), product("c", "ab", "y")], ["y"]),
    ],
)  # fmt: skip
def test_what_is_used_otherwise_is_multiplied_out(nodes: list[Node], outputs: list[str]) -> None:
    assert check(graph_of(nodes, outputs), 0).nodes == graph_of(nodes, outputs).nodes


def test_integers_and_what_is_fixed_are_multiplied_out() -> None:
    nodes = [product("a", "b", "ab"), product("x", "ab", "y")]
    assert apply_by_factors(graph_of(nodes, dtype="int32"))[1] == 0
    assert apply_by_factors(graph_of(nodes), fixed=["y"])[1] == 0
    assert apply_by_factors(graph_of(nodes))[1] == 1


def test_verification_takes_apart_what_the_original_does_not_have_and_says_so() -> None:
    one_by_one = graph_of([product("x", "a", "t"), product("t", "b", "y")])
    merged = graph_of([product("a", "b", "ab"), product("x", "ab", "y")])
    claim = "1 product of weights applied factor by factor"
    for original, optimized, apart in ((one_by_one, merged, True), (merged, one_by_one, False)):
        outcome = verify(original, optimized)
        assert outcome.ok
        assert any(claim in one.remark for one in outcome.compared) == apart
    wrong = graph_of([product("b", "a", "ab"), product("x", "ab", "y")])
    outcome = verify(one_by_one, wrong)
    assert any(claim in one.remark for one in outcome.compared)
    assert not outcome.ok
    assert outcome.failure()
    unbiased = graph_of([product("a", "b", "ab", "c"), product("x", "ab", "y")])
    assert not verify(one_by_one, unbiased).ok
    assert verify(unbiased, replace(unbiased, name="same")).ok


def test_names_that_exist_are_not_taken() -> None:
    nodes = [
        Node("relu", ("x",), ("x · a",)),
        product("a", "b", "ab"),
        product("x", "ab", "p"),
        product("x · a", "c", "q"),
    ]
    assert f32(2, SIZE) in check(graph_of(nodes, ["p", "q"]), 1).types.values()


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
    for ours, expected in zip(together.compute([inputs], data_of(original))[0], alone, strict=True):
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
    assert len(together.compute([random_inputs(original, 0)], data_of(original))[0]) == 2


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
        values = together.compute([inputs], data_of(original))[0]
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
        values = together.compute([inputs], data_of(together.graph))[0]
        alone = compute_outputs(graph, inputs, data_of(graph))
        np.testing.assert_array_equal(values[2][0], alone[0])
        assert np.allclose(values[0][0], values[2][0], rtol=1e-5) == (graph is folded)
    # a weight under its own name, with other data
    other = variant(original, [Node("matmul", ("x", "w1"), ("y",))])
    ones = replace(other, weights={"w1": Weight(f32(64, 64), np.ones((64, 64), np.float32))})
    together = put_together(other, other, ones)
    values = together.compute([inputs], data_of(together.graph))[0]
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
