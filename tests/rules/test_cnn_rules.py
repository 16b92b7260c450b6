"""Convolutions, normalizations, biases, scales, residuals: what each family of rules saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.cost import load_profile
from relational_tensat.tensor import Graph
from tests.rules.families import (
    KERNELS,
    PLAIN,
    SAME,
    check_family,
    graph,
    node,
    norm,
    optimized,
    statistics,
)

X = {"x": (2, 4, 6, 6)}
W = {"w": (4, 4, 3, 3)}
POINT = {"w": (6, 4, 1, 1)}

#: Name, families, graph, operators left at inference, a rule that made the result.
CASES: list[tuple[str, str, Graph, dict[str, int], str]] = [
    (
        "norm behind convolution",
        "norm fusion",
        graph(X, {**W, **statistics(4)},
              [node("conv", "x w", "c", **SAME), norm("c", "n"), node("relu", "n", "y")]),
        {"conv": 1},
        "norm-into-convolution",
    ),
    (
        "norm before convolution of one tap",
        "batch_norm",
        graph(X, {**POINT, **statistics(4)},
              [node("relu", "x", "r"), norm("r", "n"), node("conv", "n w", "y", **SAME)]),
        {"relu": 1, "conv": 1},
        "norm-before-convolution",
    ),
    (
        "norm before grouped convolution with bias",
        "batch_norm",
        graph(X, {"w": (6, 2, 3, 3), "b": (6,), **statistics(4)},
              [node("relu", "x", "r"), norm("r", "n"), node("conv", "n w b", "y", **PLAIN)]),
        {"relu": 1, "conv": 1},
        "norm-before-biased-convolution",
    ),
    (
        "norm before padded convolution stays",
        "batch_norm scales norm",
        graph(X, {**W, **statistics(4)}, [norm("x", "n"), node("conv", "n w", "y", **SAME)]),
        {"batch_norm": 1, "conv": 1},
        "",
    ),
    (
        "norm between products",
        "batch_norm norm fusion",
        graph({"x": (3, 8)}, {"u": (8, 5), "v": (5, 7), **statistics(5)},
              [node("matmul", "x u", "a"), node("relu", "a", "r"), norm("r", "n"),
               node("matmul", "n v", "y")]),
        {"matmul": 2},
        "norm-before-product",
    ),
    (
        "norm behind factor and summand and norm",
        "batch_norm",
        graph(X, {"k": (4, 1, 1), "c": (1, 4, 1, 1), **statistics(4), **statistics(4, "m", 50)},
              [node("mul", "x k", "a"), node("add", "a c", "b"), norm("b", "n"),
               norm("n", "y", "m")]),
        {"batch_norm": 1},
        "norm-of-scaled",
    ),
    (
        "norm behind two joined convolutions",
        "batch_norm norm",
        graph(X, {"u": (3, 4, 1, 1), "v": (5, 4, 3, 3), **statistics(8)},
              [node("conv", "x u", "a", **SAME), node("conv", "x v", "b", **SAME),
               node("concat", "a b", "c", axis=1), norm("c", "y")]),
        {"conv": 2, "concat": 1},
        "norm-of-joined-convolutions",
    ),
    (
        "norm behind pool behind convolution",
        "batch_norm norm",
        graph(X, {**W, **statistics(4)},
              [node("conv", "x w", "c", **SAME),
               node("avg_pool", "c", "p", kernel=(2, 2), stride=(2, 2), pad="valid"),
               norm("p", "y")]),
        {"conv": 1, "avg_pool": 1},
        "norm-before-avg-pool",
    ),
    (
        "bias behind residual",
        "residual fusion",
        graph({**X, "s": (2, 4, 6, 6)}, {**W, "b": (4, 1, 1)},
              [node("conv", "x w", "c", **SAME), node("add", "s c", "a"), node("add", "a b", "y")]),
        {"conv": 1, "add": 1},
        "bias-past-residual-before",
    ),
    (
        "bias of the other branch",
        "residual fusion",
        graph({**X, "s": (2, 4, 6, 6)}, {**W, "b": (4, 1, 1), "c": (4,)},
              [node("conv", "x w c", "a", **SAME), node("add", "s b", "t"), node("add", "t a", "y")]),
        {"conv": 1, "add": 1},
        "bias-from-residual-before-biased",
    ),
    (
        "three branches and their norms",
        "residual norm fusion",
        graph(X, {**W, "v": (4, 4, 1, 1), **statistics(4), **statistics(4, "m", 50),
                  **statistics(4, "k", 70)},
              [node("conv", "x w", "a", **SAME), norm("a", "an"), node("conv", "x v", "b", **SAME),
               norm("b", "bn", "m"), norm("x", "xn", "k"), node("add", "an bn", "s"),
               node("add", "s xn", "t"), node("relu", "t", "y")]),
        {"conv": 1},
        "norm-behind-own-convolution",
    ),
    (
        "operand beside its depthwise convolution",
        "residual",
        graph(X, {"w": (4, 1, 3, 3), "b": (4,)},
              [node("conv", "x w b", "c", **SAME), node("add", "x c", "y")]),
        {"conv": 1},
        "operand-before-own-biased-convolution",
    ),
    (
        "operand beside a convolution of larger steps stays",
        "residual",
        graph({"x": (2, 4, 1, 1)}, {"w": (4, 4, 2, 2)},
              [node("conv", "x w", "c", stride=(1, 1), pad=(1, 1, 0, 0)), node("add", "x c", "y")]),
        {"conv": 1, "add": 1},
        "",
    ),
    (
        "input shifted and scaled per channel",
        "scales",
        graph(X, {"m": (4, 1, 1), "k": (4, 1, 1), "w": (6, 2, 3, 3)},
              [node("add", "x m", "a"), node("div", "a k", "b"), node("conv", "b w", "y", **PLAIN)]),
        {"conv": 1},
        "shift-before-convolution",
    ),
    (
        "input scaled before a padded convolution",
        "scales",
        graph(X, {"k": (4, 1, 1), **W},
              [node("mul", "x k", "a"), node("smul", "a", "b", value=0.5), node("neg", "b", "c"),
               node("conv", "c w", "y", **SAME)]),
        {"conv": 1},
        "scale-before-convolution",
    ),
    (
        "columns shifted and scaled before a product",
        "scales layout",
        graph({"x": (3, 8)}, {"t": (8,), "k": (8,), "u": (8, 5)},
              [node("add", "x t", "a"), node("mul", "a k", "b"), node("matmul", "b u", "c"),
               node("neg", "c", "y")]),
        {"matmul": 1},
        "shift-before-product",
    ),
    (
        "rows of a product with constant left factor scaled",
        "scales",
        graph({"x": (8, 5)}, {"a": (3, 8), "k": (3, 1)},
              [node("matmul", "a x", "b"), node("div", "b k", "y")]),
        {"matmul": 1},
        "rows-scaled",
    ),
    (
        "border of zeros before relu and convolution",
        "pad conv fusion",
        graph(X, W,
              [node("pad", "x", "p", pads=(0, 0, 1, 1, 0, 0, 1, 1)), node("relu", "p", "r"),
               node("conv", "r w", "y", **PLAIN)]),
        {"relu": 1, "conv": 1},
        "pad-into-convolution",
    ),
    (
        "borders of zeros before pools",
        "pad",
        graph(X, {},
              [node("relu", "x", "r"), node("pad", "r", "p", pads=(0, 0, 0, 1, 0, 0, 1, 1)),
               node("max_pool", "p", "m", kernel=(3, 3), stride=(2, 2), pad="valid"),
               node("pad", "m", "q", pads=(0, 0, 1, 1, 0, 0, 1, 1)),
               node("avg_pool", "q", "y", kernel=(2, 2), stride=(1, 1), pad="valid")]),
        {"relu": 1, "max_pool": 1, "avg_pool": 1},
        "pad-into-avg-pool",
    ),
    (
        "activation before a pool",
        "fusion",
        graph(X, {},
              [node("tanh", "x", "t"),
               node("max_pool", "t", "y", kernel=(2, 2), stride=(2, 2), pad="valid")]),
        {"max_pool": 1},
        "activation-before-max-pool",
    ),
    (
        "two linear convolutions of one tap",
        "pointwise",
        graph(X, {"w": (8, 4, 1, 1), "b": (8,), "v": (6, 8, 1, 1), "c": (6,)},
              [node("conv", "x w b", "a", **SAME), node("conv", "a v c", "y", **SAME)]),
        {"conv": 1},
        "biased-pointwise-behind-biased-convolution",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("families", "made", "left", "rule"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_operators_that_are_left(
    families: str, made: Graph, left: dict[str, int], rule: str
) -> None:
    check_family(made, families, left, rule)


def test_grouped_convolutions_of_one_operand_are_one() -> None:
    made = graph(
        X,
        {"v": (4, 2, 3, 3), "b": (4,), "w": (6, 2, 3, 3), "c": (6,)},
        [node("conv", "x v b", "p", **SAME), node("conv", "x w c", "q", **SAME)],
        "p q",
    )
    views = replace(KERNELS, free=KERNELS.free | {"split"})  # else the split costs what is saved
    rule = "merge-biased-grouped-convolutions-sharing-operand"
    check_family(made, "merge", {"conv": 1, "split": 1}, rule, views)


#: Graphs in which the order of two operators decides: name, graph, share of the cost that is left.
ORDERS: list[tuple[str, Graph, float]] = [
    (
        "mean of a convolution of one tap",
        graph({"x": (1, 64, 28, 28)}, {"w": (256, 64, 1, 1), "b": (256,)},
              [node("conv", "x w b", "c", **SAME),
               node("reduce_mean", "c", "y", axes=(2, 3), keepdims=True)]),
        0.7,
    ),
    (
        "pool of a convolution of one tap",
        graph({"x": (1, 128, 56, 56)}, {"w": (128, 128, 1, 1)},
              [node("conv", "x w", "c", **SAME),
               node("avg_pool", "c", "y", kernel=(2, 2), stride=(2, 2), pad="valid")]),
        0.85,
    ),
    (
        "convolution of one tap of a pool",
        graph({"x": (1, 256, 28, 28)}, {"w": (16, 256, 1, 1), "b": (16,)},
              [node("avg_pool", "x", "p", kernel=(3, 3), stride=(1, 1), pad="same"),
               node("conv", "p w b", "y", **SAME)]),
        0.8,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "share"), [order[1:] for order in ORDERS],
                         ids=[order[0] for order in ORDERS])  # fmt: skip
def test_order_that_costs_least(made: Graph, share: float) -> None:
    result = optimized(made, "pointwise", load_profile("t4"))
    assert result.cost_after_us <= share * result.cost_before_us
    assert [n.op for n in result.graph.nodes] == [n.op for n in reversed(made.nodes)]
