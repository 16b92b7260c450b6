"""Kernel times by hand, and the sum over a graph."""

from __future__ import annotations

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.cost import Profile, graph_cost_us, kernel_time_us
from relational_tensat.tensor import AttrValue, Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.uses import count_inference_ops, weight_only_values
from tests.graphs import f32

PROFILE = Profile("test", 1e12, 1e9, 3.0, frozenset({"reshape"}))


def test_a_kernel_bound_by_memory() -> None:
    x = f32(1000)
    # 1000 elements read and written, 4 bytes each, 1e9 bytes/s: 8 µs, and 3 µs of launch
    assert kernel_time_us(PROFILE, "relu", (x,), x, {}) == pytest.approx(8.0 + 3.0)


def test_a_kernel_bound_by_arithmetic() -> None:
    fast_memory = Profile("test", 1e9, 1e15, 3.0)
    types = (f32(10, 20), f32(20, 30))
    time_us = kernel_time_us(fast_memory, "matmul", types, f32(10, 30), {})
    assert time_us == pytest.approx(2 * 10 * 20 * 30 / 1e9 * 1e6 + 3.0)


def test_the_peak_is_that_of_the_results_element_type() -> None:
    profile = Profile("test", {"float16": 4e9, "default": 1e9}, 1e15, 0.0)
    half = tuple(TensorType("float16", shape) for shape in ((8, 8), (8, 8)))
    slow = kernel_time_us(profile, "matmul", (f32(8, 8), f32(8, 8)), f32(8, 8), {})
    fast = kernel_time_us(profile, "matmul", half, half[0], {})
    assert slow == pytest.approx(4 * fast)


def test_what_is_free() -> None:
    x = f32(4, 6)
    assert kernel_time_us(PROFILE, "reshape", (x,), f32(24), {"shape": (24,)}) == 0.0
    assert kernel_time_us(PROFILE, "noop", (x, x), (x, x), {}) == 0.0
    assert kernel_time_us(PROFILE, "identity", (x,), x, {}) == 0.0
    assert kernel_time_us(PROFILE, "transpose", (x,), f32(6, 4), {"perm": (1, 0)}) > 3.0


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(UsageError, match="did you mean 'relu'"):
        kernel_time_us(PROFILE, "rela", (f32(1),), f32(1), {})


def graph_with_constant_part() -> Graph:
    return build_graph(
        "g",
        {"x": f32(2, 3)},
        {"w": Weight(f32(3, 4)), "v": Weight(f32(3, 4))},
        [
            Node("add", ("w", "v"), ("wv",)),
            Node("matmul", ("x", "wv"), ("y",)),
            Node("relu", ("y",), ("z",)),
        ],
        ["z"],
    )


def test_what_depends_on_weights_only_is_free() -> None:
    graph = graph_with_constant_part()
    assert weight_only_values(graph) == {"w", "v", "wv"}
    matmul = kernel_time_us(PROFILE, "matmul", (f32(2, 3), f32(3, 4)), f32(2, 4), {})
    relu = kernel_time_us(PROFILE, "relu", (f32(2, 4),), f32(2, 4), {})
    assert graph_cost_us(graph, PROFILE) == pytest.approx(matmul + relu)
    assert count_inference_ops(graph) == {"matmul": 1, "relu": 1}


@pytest.mark.parametrize(("key", "constant"), [("", {"w", "r"}), ("random", {"w"})])
def test_random_operators_are_not_constant(key: str, constant: set[str]) -> None:
    attrs: dict[str, AttrValue] = {
        "op_type": "Mystery",
        "domain": "",
        "opset": 17,
        "payload": "",
        "out_types": (("float32", (2,)),),
        "key": key,
    }
    graph = build_graph(
        "g",
        {"x": f32(2)},
        {"w": Weight(f32(2))},
        [Node("opaque", ("w",), ("r",), attrs), Node("add", ("x", "r"), ("y",))],
        ["y"],
    )
    assert weight_only_values(graph) == constant
    assert count_inference_ops(graph).get("opaque", 0) == (1 if key else 0)


def test_split_is_charged_for_all_its_results() -> None:
    graph = build_graph(
        "g",
        {"x": f32(4, 6)},
        {},
        [Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (2, 4)})],
        ["a", "b"],
    )
    # 24 elements read, 24 written
    assert graph_cost_us(graph, PROFILE) == pytest.approx(2 * 24 * 4 / 1e9 * 1e6 + 3.0)
