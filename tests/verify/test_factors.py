"""Products of weights, applied factor by factor: the same numbers, and still what finds a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.verify import verify
from relational_tensat.verify.drawing import random_inputs, seeded_weights
from relational_tensat.verify.factors import apply_by_factors
from relational_tensat.verify.outputs import compute_outputs
from tests.graphs import f32

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
    inputs, weights = random_inputs(graph, 0), seeded_weights(graph, 0)
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
