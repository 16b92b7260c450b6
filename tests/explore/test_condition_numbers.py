"""Which constants cost a model its digits, and that no rule regroups sums and products with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore
from relational_tensat.explore.match.conditions import ill_conditioned
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from tests.explore.machine_values import disagreements

_ROWS, _IMAGE = (4, 3), (1, 3, 2, 2)
_VECTOR, _CHANNELS = np.ones(3), np.ones((3, 1, 1))
_RANDOM = np.random.default_rng(0).normal(size=(3, 3))
#: Its columns' sums are zero: an offset that all elements of a row have cancels.
_CANCELLING = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 1.0], [0.0, 0.0, -1.0]])
_SPREAD = np.array([1.0, 1e-2, 1e-4])
_CONV: Mapping[str, Any] = {"stride": (1, 1), "pad": "valid"}
_NORM: Mapping[str, Any] = {"epsilon": 1e-12}


def chain(*steps: Any, shape: Sequence[int] = _ROWS, dtype: str = "float32") -> Graph:
    """Return operators one after the other, each with its constants w0, w1, … and attributes."""
    weights: dict[str, Weight] = {}
    nodes: list[Node] = []
    for op, constants, attrs in steps:
        names = []
        for constant in constants:
            names.append(f"w{len(weights)}")
            kind = TensorType(dtype, np.shape(constant))
            weights[names[-1]] = Weight(kind, np.asarray(constant, dtype))
        value = f"t{len(nodes)}" if nodes else "x"
        nodes.append(Node(op, (value, *names), (f"t{len(nodes) + 1}",), attrs))
    inputs = {"x": TensorType(dtype, tuple(shape))}
    return build_graph("chain", inputs, weights, nodes, [f"t{len(nodes)}"])


def step(op: str, *constants: Any, **attrs: Any) -> Any:
    return op, constants, attrs


def norm(scale: Any, bias: Any, mean: Any, variance: Any) -> Any:
    vectors = [np.broadcast_to(vector, 3) for vector in (scale, bias, mean, variance)]
    return step("batch_norm", *vectors, **_NORM)


def conv(factor: float, *bias: Any) -> Any:
    return step("conv", factor * _RANDOM.reshape(3, 3, 1, 1), *bias, **_CONV)


#: Each constant is moderate by itself.
_HARMFUL: Mapping[str, tuple[Graph, set[str]]] = {
    "a small factor before a summand that goes again": (
        chain(step("mul", 1e-6), step("add", 4000.0), step("sub", 4000.0)), {"w1", "w2"},
    ),
    "many summands": (
        chain(*[step("add", 4000.0)] * 6, *[step("sub", 4000.0)] * 6), {f"w{i}" for i in range(12)},
    ),
    "small filters, and a norm that takes their bias off": (
        chain(conv(1e-4, 4000 * _VECTOR), norm(1, 0, 4000, 1e-8), shape=_IMAGE), {"w1", "w4"},
    ),
    "a matrix that cancels a summand": (
        chain(step("mul", 1e-4), step("add", 4000 * _VECTOR), step("matmul", _CANCELLING)), {"w1"},
    ),
    "products, and what the second makes of a summand": (
        chain(
            step("matmul", 1e-6 * _RANDOM), step("add", 4000 * _VECTOR),
            step("matmul", _RANDOM), step("sub", 4000 * _RANDOM.sum(axis=0)),
        ), {"w1", "w3"},
    ),
    "a channel that is smaller than the others, made as large": (
        chain(
            step("mul", _SPREAD), step("add", 4000 * _VECTOR), step("sub", 4000 * _VECTOR),
            step("div", _SPREAD),
        ), {"w1", "w2"},
    ),
    "two norms": (
        chain(norm(1e-4, 4000, 0, 1), norm(1, 0, 4000, 1e-8), shape=_IMAGE), {"w1", "w6"},
    ),
    "a mean that is taken off": (
        build_graph(
            "centred", {"x": TensorType("float32", _ROWS)},
            {
                "k": Weight(TensorType("float32", ()), np.array(1e-6, np.float32)),
                "c": Weight(TensorType("float32", ()), np.array(4000, np.float32)),
            },
            [
                Node("mul", ("x", "k"), ("a",)), Node("add", ("a", "c"), ("b",)),
                Node("reduce_mean", ("b",), ("m",), {"axes": (1,), "keepdims": True}),
                Node("sub", ("b", "m"), ("y",)),
            ], ["y"],
        ), {"c"},
    ),
    "factors that lead out of the type": (
        chain(*[step("mul", 4000.0)] * 11, *[step("div", 4000.0)] * 11),
        {f"w{i}" for i in range(10)},
    ),
}  # fmt: skip
_HARMLESS: Mapping[str, Graph] = {
    "a large summand of each place of an image": chain(
        step("add", 4000 * np.ones((2, 5))), conv(1), shape=(1, 3, 2, 5)
    ),
    "one large summand": chain(step("add", 4000.0), step("sub", 4000.0)),
    "a summand that stays": chain(step("mul", 1e-6), step("add", 4000.0)),
    "a norm of a biased convolution": chain(conv(1, _VECTOR), norm(2, -1, 3, 0.1), shape=_IMAGE),
    "a channel that is nearly pruned": chain(
        conv(1), norm(_SPREAD**3, 0.1, 0.2, 1), step("relu"), conv(1), shape=_IMAGE
    ),
    "pictures": chain(
        step("div", 255.0), step("sub", 0.45 * _CHANNELS), step("div", 0.22 * _CHANNELS), shape=_IMAGE
    ),
    "pictures in float16": chain(
        step("sub", 0.45 * _CHANNELS), step("div", 0.22 * _CHANNELS), shape=_IMAGE, dtype="float16"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(_HARMFUL))
def test_constants_that_cost_digits_are_found_and_left_alone(name: str) -> None:
    graph, constants = _HARMFUL[name]
    assert constants <= ill_conditioned(graph)
    (kind,) = graph.inputs.values()
    x = np.random.default_rng(1).normal(size=kind.shape).astype(np.float32)
    egraph = EGraph.create(graph)
    explore(egraph, load_rules(), ExplorationOptions(iterations=4, node_limit=800))
    assert disagreements(egraph, {"x": x}, 1e-3) == []


def test_constants_that_cost_none_are_not() -> None:
    assert {name: ill_conditioned(graph) for name, graph in _HARMLESS.items()} == {
        name: frozenset() for name in _HARMLESS
    }
