"""Reductions and the algebra of single elements: what the rules save, many laws in one graph."""

from __future__ import annotations

import numpy as np
import pytest

from relational_tensat.cost import load_profile
from relational_tensat.tensor import Node, TensorType, Weight
from tests.graphs import weight
from tests.rules.families import check_family, graph, node, optimized

X = {"x": (4, 6), "z": (4, 6)}


def number(value: float) -> Weight:
    """Return a weight that is one number."""
    return Weight(TensorType("float32", ()), np.array(value, np.float32))


def reduction(op: str, x: str, output: str, axes: tuple[int, ...], keepdims: bool = True) -> Node:
    """Return a reduction."""
    return node(op, x, output, axes=axes, keepdims=keepdims)


def test_signs_go_into_differences_weights_and_each_other() -> None:
    made = graph(X, {"b": (6,), "w": (6, 3)},
                 [node("neg", "x", "n"), node("neg", "z", "m"),
                  node("add", "n z", "a"),       # z - x
                  node("sub", "n m", "s"),       # z - x, too
                  node("mul", "n m", "p"),       # x × z
                  node("neg", "s", "d"),         # x - z
                  node("abs", "d", "e"),         # |x - z|, or |z - x|
                  node("matmul", "n w", "f"), node("neg", "f", "g")],  # x·w
                 "a p e g")  # fmt: skip
    check_family(made, "algebra identity scales", {"sub": 1, "mul": 1, "abs": 1, "matmul": 1},
                 "difference-with-negative")  # fmt: skip


def test_a_small_subtrahend_becomes_a_bias() -> None:
    nodes = [node("conv", "x w", "c", stride=(1, 1), pad="valid"), node("sub", "b c", "y")]
    made = graph({"x": (2, 4, 3, 3)}, {"w": (5, 4, 1, 1), "b": (5, 1, 1)}, nodes)
    families = "algebra fusion scales"
    check_family(made, families, {"conv": 1}, "difference-from-small-operand")


def test_exponentials_and_sigmoids() -> None:
    made = graph(X, {"one": number(1.0)},
                 [node("exp", "x", "e"), node("exp", "z", "f"),
                  node("div", "e f", "a"),       # not exp(x - z): both may be infinite
                  node("neg", "x", "n"), node("exp", "n", "g"), node("add", "one g", "h"),
                  node("div", "one h", "s"),     # sigmoid(x)
                  node("clip", "s", "b", min=-1.0, max=1.0),
                  node("mul", "z z", "q"), node("sqrt", "q", "c")],  # |z|
                 "a b c")  # fmt: skip
    left = {"exp": 2, "div": 1, "sigmoid": 1, "abs": 1}
    check_family(made, "algebra numbers", left, "sigmoid-written-out-backwards")


def test_what_is_added_and_taken_away() -> None:
    made = graph(X, {},
                 [node("sub", "x z", "d"), node("add", "d z", "a"), node("relu", "a", "p"),  # x
                  node("smul", "z", "t", value=3.0), node("add", "t z", "u"),
                  node("add", "u u", "q"),       # 8·z
                  node("neg", "x", "n"), node("relu", "x", "r"), node("relu", "n", "s"),
                  node("add", "r s", "v")],      # |x|
                 "p q v")  # fmt: skip
    check_family(made, "algebra identity", {"relu": 1, "smul": 1, "abs": 1}, "sum-with-own-scale")


def test_what_infinities_and_zeros_would_break_stays() -> None:
    made = graph(X, {"zero": number(0.0)},
                 [node("sub", "x x", "a"), node("div", "x x", "b"), node("mul", "x zero", "c"),
                  node("log", "x", "l"), node("exp", "l", "d")],
                 "a b c d")  # fmt: skip
    check_family(made, "algebra", {"sub": 1, "div": 1, "mul": 1, "log": 1, "exp": 1}, "")


def test_reductions_in_a_row_are_one() -> None:
    made = graph({"x": (2, 3, 4, 5)}, {},
                 [reduction("reduce_mean", "x", "a", (3,)), reduction("reduce_mean", "a", "p", (2,)),
                  reduction("reduce_max", "x", "b", (1,), False),
                  reduction("reduce_max", "b", "q", (1,), False),
                  reduction("reduce_sum", "x", "c", (0,), False),
                  reduction("reduce_sum", "c", "r", (2,), True),
                  reduction("reduce_min", "x", "d", (0,), True),
                  reduction("reduce_min", "d", "s", (2,), False)],
                 "p q r s")  # fmt: skip
    left = {"reduce_mean": 1, "reduce_max": 1, "reduce_sum": 1, "reduce_min": 1}
    check_family(made, "reduce layout", left, "reduce-twice")


def test_reductions_need_nothing_moved_before_them() -> None:
    made = graph({"x": (2, 3, 4, 5)}, {},
                 [node("transpose", "x", "t", perm=(0, 2, 3, 1)),
                  reduction("reduce_sum", "t", "p", (1, 2), False),
                  node("reshape", "x", "f", shape=(2, 3, 20)),
                  reduction("reduce_mean", "f", "m", (2,), True),
                  node("relu", "x", "r"), reduction("reduce_max", "r", "q", (2, 3), True),
                  node("avg_pool", "x", "a", kernel=(4, 5), stride=(1, 1), pad="valid"),
                  node("reshape", "a", "b", shape=(2, 3)), node("reshape", "m", "n", shape=(2, 3)),
                  node("sub", "b n", "s")],
                 "p q s")  # fmt: skip
    result = optimized(made, "reduce layout")
    ops = {op: n for op, n in result.ops_after.items() if op not in ("avg_pool", "reduce_mean")}
    assert ops == {"reduce_sum": 1, "reduce_max": 1, "relu": 1, "sub": 1, "reshape": 1}
    assert result.cost_after_us == pytest.approx(5.0)  # the mean is there once, by either name


def test_sums_become_means_and_means_sums() -> None:
    made = graph({"x": (2, 3, 4)}, {"n": number(4.0)},
                 [reduction("reduce_sum", "x", "a", (2,)), node("div", "a n", "p"),
                  reduction("reduce_mean", "x", "b", (1, 2)), node("smul", "b", "q", value=12.0)],
                 "p q")  # fmt: skip
    check_family(made, "reduce", {"reduce_mean": 1, "reduce_sum": 1}, "scaled-mean-is-sum")


def test_reductions_come_first_where_that_leaves_less_to_do() -> None:
    """Scales, shifts, products and joins of large tensors are left with what is reduced."""
    made = graph({"x": (64, 32, 128), "z": (64, 32, 128)}, {"c": (32, 1), "w": weight(128, 128)},
                 [node("matmul", "x w", "m"), node("mul", "m c", "k"),
                  node("concat", "k z", "j", axis=0),
                  reduction("reduce_mean", "j", "y", (2,), False)])  # fmt: skip
    result = optimized(made, "reduce layout", load_profile("t4"))
    assert result.cost_after_us < 0.6 * result.cost_before_us
    rows = graph({"x": (4, 128, 128)}, {"w": (128, 256), "b": (256,)},
                 [node("matmul", "x w b", "m"), reduction("reduce_mean", "m", "y", (1,))])  # fmt: skip
    result = optimized(rows, "reduce", load_profile("t4"))
    assert [n.op for n in result.graph.nodes] == ["reduce_mean", "matmul"]


def test_known_summands_of_full_size_are_added_before_inference() -> None:
    made = graph({"x": (4, 6)}, {"b": (4, 6), "c": (4, 6)},
                 [node("add", "x b", "s"), node("add", "s c", "t"),
                  node("mul", "x b", "p"), node("mul", "p c", "y")], "t y")  # fmt: skip
    check_family(made, "elementwise", {"add": 1, "mul": 1}, "known-operands-meet")


def test_the_sign_of_a_rotated_half_goes_into_what_is_known() -> None:
    made = graph({"x": (1, 3, 8)}, {"w": (3, 8)},
                 [Node("split", ("x",), ("a", "b"), {"axis": 2, "sizes": (4, 4)}),
                  node("neg", "b", "n"), node("concat", "n a", "c", axis=2),
                  node("mul", "c w", "y")])  # fmt: skip
    left = {"split": 1, "concat": 1, "mul": 1}
    check_family(made, "concat", left, "sign-of-first-half-into-factor")
