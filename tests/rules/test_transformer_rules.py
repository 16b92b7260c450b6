"""What transformers consist of is found in the spellings of exporters, and becomes as few kernels."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relational_tensat.cost import Profile, load_profile
from relational_tensat.tensor import Graph, tensors_of
from tests.mugraph.parts import t4_that_copies
from tests.rules.model_spellings import Spelling, optimized

ROOT2 = math.sqrt(2.0)
#: Rule files, for tests of one family in many spellings: each file costs time.
NORMS = ("elementwise", "identity", "layer_norm", "numbers")
GELUS = ("algebra", "elementwise", "gelu", "identity", "numbers")
ATTENTION = (
    "attention", "elementwise", "fusion", "identity", "layout", "matmul", "numbers",
)  # fmt: skip
#: Every kernel costs its launch, reshapes included.
LAUNCHES = Profile("launches", 1e15, 1e15, 1.0)


def mean(s: Spelling, x: Any, axes: tuple[int, ...] = (-1,)) -> Any:
    return s("ReduceMean", x, axes=list(axes), keepdims=1)


def layer_norm(
    s: Spelling, x: Any, square: str = "pow", divide: str = "div", axes: tuple[int, ...] = (-1,),
    width: tuple[int, ...] = (8,),
) -> Any:  # fmt: skip
    """PyTorch's decomposition, before opset 17, with its variants."""
    centred = s("Sub", x, mean(s, x, axes))
    squared = s("Pow", centred, 2.0) if square == "pow" else s("Mul", centred, centred)
    shifted = s("Add", mean(s, squared, axes), 1e-5)
    normal = {
        "div": lambda: s("Div", centred, s("Sqrt", shifted)),
        "reciprocal": lambda: s("Mul", centred, s("Reciprocal", s("Sqrt", shifted))),
        "quotient": lambda: s("Mul", centred, s("Div", 1.0, s("Sqrt", shifted))),
        "power": lambda: s("Mul", s("Pow", shifted, -0.5), centred),
        "root-by-power": lambda: s("Div", centred, s("Pow", shifted, 0.5)),
    }[divide]()
    scaled = s("Mul", normal, s.weight(*width))
    return s("Add", scaled, s.weight(*width))


def test_layer_norm() -> None:
    """Every spelling, of an input of its own."""
    divides = ("div", "reciprocal", "quotient", "power", "root-by-power")
    s = Spelling(**{f"x{k}": (2, 5, 8) for k in range(2 * len(divides))})
    spelled = itertools.product(("pow", "mul"), divides)
    results = [layer_norm(s, f"x{k}", *spelling) for k, spelling in enumerate(spelled)]
    assert optimized(s.graph(*results), NORMS).ops == {"layer_norm": 10}


def test_layer_norm_over_several_axes() -> None:
    s = Spelling(x=(2, 3, 4))
    ops = optimized(s.graph(layer_norm(s, "x", axes=(1, 2), width=(3, 4))), NORMS).ops
    assert ops == {"layer_norm": 1}


def test_layer_norm_of_tensorflow() -> None:
    s = Spelling(x=(2, 5, 8))
    centre = mean(s, "x")
    apart = s("Sub", "x", centre)
    variance = mean(s, s("Mul", apart, apart))
    inverse = s("Reciprocal", s("Sqrt", s("Add", variance, 1e-3)))
    factor = s("Mul", inverse, s.weight(8))
    shift = s("Sub", s.weight(8), s("Mul", centre, factor))
    ops = optimized(s.graph(s("Add", s("Mul", "x", factor), shift)), NORMS).ops
    assert ops == {"layer_norm": 1}


def test_no_layer_norm_over_the_first_axis() -> None:
    s = Spelling(x=(2, 5, 8))
    ops = optimized(s.graph(layer_norm(s, "x", axes=(1,)))).ops
    assert "layer_norm" not in ops and ops["reduce_mean"] == 2


def rms_norm(s: Spelling, x: Any, divide: str = "div", width: int = 8) -> Any:
    root = s("Sqrt", s("Add", mean(s, s("Pow", x, 2.0)), 1e-6))
    normal = s("Div", x, root) if divide == "div" else s("Mul", x, s("Div", 1.0, root))
    return s("Mul", s.weight(width), normal)


def test_rms_norm() -> None:
    s = Spelling(x=(2, 5, 8), y=(2, 5, 8))
    graph = s.graph(rms_norm(s, "x", "div"), rms_norm(s, "y", "quotient"))
    assert optimized(graph, NORMS).ops == {"rms_norm": 2}


def erf_of(s: Spelling, x: Any, scale: str) -> Any:
    inner = s("Div", x, ROOT2) if scale == "div" else s("Mul", x, 1 / ROOT2)
    return s("Add", s("Erf", inner), 1.0)


def gelus(s: Spelling, x: str, scale: str) -> dict[str, Any]:
    """The orders in which x, the gate g = erf(x / √2) + 1 and the half h are multiplied."""
    gate, half = erf_of(s, x, scale), np.array([0.5], np.float32)
    return {
        "(x g) h": s("Mul", s("Mul", x, gate), 0.5),
        "(x h) g": s("Mul", s("Mul", x, half), gate),
        "x (g h)": s("Mul", x, s("Mul", gate, half)),
        "g (x h)": s("Mul", gate, s("Mul", 0.5, x)),
        "h (g x)": s("Mul", 0.5, s("Mul", gate, x)),
        "(g x) / 2": s("Div", s("Mul", gate, x), 2.0),
    }


@pytest.mark.parametrize("scale", ["div", "mul"])
def test_gelu(scale: str) -> None:
    """Every order, of an input of its own."""
    names = [f"x{k}" for k in range(6)]
    s = Spelling(**dict.fromkeys(names, (2, 5, 8)))
    results = [[*gelus(s, name, scale).values()][k] for k, name in enumerate(names)]
    assert optimized(s.graph(*results), GELUS).ops == {"gelu": 6}


def test_all_spellings_of_a_gelu_are_one_value() -> None:
    s = Spelling(x=(2, 5, 8))
    a, *others = gelus(s, "x", "div").values()
    stacked = s("Concat", a, *others[:3], axis=0)
    assert optimized(s.graph(stacked), GELUS).ops == {"gelu": 1, "concat": 1}


def gelu_by_tanh(s: Spelling, x: str, cube: str, flipped: bool) -> Any:
    def pair(op: str, a: Any, b: Any) -> Any:
        return s(op, b, a) if flipped else s(op, a, b)

    root = math.sqrt(2 / math.pi)
    if cube == "factored":  # x √(2/π) (1 + 0.044715 x x)
        bent = pair("Add", s("Mul", s("Mul", x, 0.044715), x), 1.0)
        inner = pair("Mul", s("Mul", x, root), bent)
    else:
        third = s("Pow", x, 3.0) if cube == "pow" else s("Mul", s("Mul", x, x), x)
        inner = s("Mul", pair("Add", x, s("Mul", third, 0.044715)), root)
    gate = s("Add", s("Tanh", inner), 1.0)
    return pair("Mul", s("Mul", x, 0.5), gate)


def test_gelu_by_tanh() -> None:
    """Every spelling, of an input of its own."""
    s = Spelling(**{f"x{k}": (2, 5, 8) for k in range(6)})
    spelled = itertools.product(("pow", "mul", "factored"), (False, True))
    results = [gelu_by_tanh(s, f"x{k}", *spelling) for k, spelling in enumerate(spelled)]
    assert optimized(s.graph(*results), GELUS).ops == {"gelu": 6}


def test_no_gelu_of_another_scale() -> None:
    s = Spelling(x=(2, 5, 8))
    gate = s("Add", s("Erf", s("Mul", "x", 0.7)), 1.0)
    ops = optimized(s.graph(s("Mul", s("Mul", "x", gate), 0.5)), GELUS).ops
    assert "gelu" not in ops


def test_sigmoid_and_silu_of_exponentials() -> None:
    s = Spelling(x=(2, 8), y=(2, 8))
    x_below, y_below = (s("Add", s("Exp", s("Neg", name)), 1.0) for name in ("x", "y"))
    graph = s.graph(s("Div", 1.0, x_below), s("Div", "y", y_below))
    assert optimized(graph, GELUS).ops == {"sigmoid": 2, "mul": 1}


def heads(s: Spelling, x: str, bias: bool, perm: tuple[int, ...] = (0, 2, 1, 3)) -> Any:
    """A projection of 1 x 6 x 8 and its four heads of 2."""
    product = s("MatMul", x, s.weight(8, 8))
    projected = s("Add", s.weight(8), product) if bias else product
    return s("Transpose", s("Reshape", projected, [1, 6, 4, 2]), perm=list(perm))


@pytest.mark.parametrize(
    ("scale", "key"),
    [("div", "after"), ("mul", "folded"), ("query", "folded"), ("both", "after"),
     ("masked", "folded"), ("masked", "after")],
)  # fmt: skip
def test_scale_of_attention_goes_into_the_weights(scale: str, key: str) -> None:
    """Three projections, two products, a softmax; no kernel for scales, mask and biases."""
    s = Spelling(x=(1, 6, 8))
    query, value = heads(s, "x", bias=True), heads(s, "x", bias=False)
    if scale == "query":
        query = s("Div", query, math.sqrt(2))
    if scale == "both":
        query = s("Mul", query, 2**-0.25)
    if key == "folded":
        keys = heads(s, "x", bias=True, perm=(0, 2, 3, 1))
    else:
        keys = s("Transpose", heads(s, "x", bias=True), perm=[0, 1, 3, 2])
    if scale == "both":
        keys = s("Mul", keys, 2**-0.25)
    scores = s("MatMul", query, keys)
    if scale in ("mul", "masked"):
        scores = s("Mul", scores, 2**-0.5)
    if scale == "div":
        scores = s("Div", scores, math.sqrt(2))
    if scale == "masked":
        mask = np.triu(np.full((1, 1, 6, 6), -1e9, np.float32), 1)
        scores = s("Add", scores, mask)
    mixed = s("MatMul", s("Softmax", scores, axis=-1), value)
    ops = optimized(s.graph(s("Transpose", mixed, perm=[0, 2, 1, 3])), ATTENTION).ops
    assert ops == {"matmul": 5, "reshape": 3, "transpose": 4, "softmax": 1}


def test_softmax_ignores_what_is_the_same_in_a_row() -> None:
    s = Spelling(x=(2, 3, 4))
    shifted = s("Sub", "x", s("ReduceMax", "x", axes=[-1], keepdims=1))
    power = s("Exp", shifted)
    total = s("ReduceSum", power, [-1], keepdims=1)
    assert optimized(s.graph(s("Div", power, total)), ATTENTION).ops == {"softmax": 1}
    again = s.graph(s("Softmax", shifted, axis=-1))
    assert optimized(again, ATTENTION).ops == {"softmax": 1}


@pytest.mark.parametrize("op", ["Add", "Sub"])
def test_softmax_does_not_ignore_what_may_be_a_mask_of_a_row(op: str) -> None:
    """-inf in a whole row makes NaN, the lowest number equal weights."""
    s = Spelling(x=(2, 3, 4), mask=(2, 3, 1))
    for scores in ("x", s("MatMul", "x", s.weight(4, 5))):
        found = optimized(s.graph(s("Softmax", s(op, scores, "mask"), axis=-1))).graph
        assert any("mask" in node.inputs for node in found.nodes)


def test_softmax_behind_a_reshape_of_other_axes() -> None:
    s = Spelling(x=(2, 3, 4))
    flat = s("Reshape", "x", [6, 4])
    result = optimized(
        s.graph(s("Reshape", s("Softmax", flat, axis=-1), [2, 3, 4])), ATTENTION, cost=LAUNCHES
    ).ops
    assert result == {"softmax": 1}


@pytest.mark.parametrize("bias", [False, True])
def test_query_key_and_value_become_one_product(bias: bool, tmp_path: Path) -> None:
    s = Spelling(x=(1, 6, 8))
    results = []
    for width in (8, 4, 4):
        product = s("MatMul", "x", s.weight(8, width))
        results.append(s("Add", product, s.weight(width)) if bias else product)
    copies = load_profile(t4_that_copies(tmp_path))
    result = optimized(s.graph(*results), multi_iterations=2, cost=copies)
    assert result.ops == {"matmul": 1, "split": 1}
    assert result.exploration.stop_reason == "saturated"


def test_gate_and_up_become_one_product(tmp_path: Path) -> None:
    """Where splits are free; elsewhere a split costs as much as it saves."""
    s = Spelling(x=(1, 6, 8))
    gate, up = s("MatMul", "x", s.weight(8, 16)), s("MatMul", "x", s.weight(8, 16))
    gated = s("Mul", s("Mul", gate, s("Sigmoid", gate)), up)
    graph = s.graph(s("MatMul", gated, s.weight(16, 8)))
    assert optimized(graph, cost=load_profile("tensat_t4")).ops == {
        "matmul": 2,
        "mul": 2,
        "split": 1,
        "sigmoid": 1,
    }
    copies = load_profile(t4_that_copies(tmp_path))
    assert optimized(graph, cost=copies).ops == {"matmul": 3, "mul": 2, "sigmoid": 1}


def test_a_linear_layer_on_rows_needs_no_reshapes() -> None:
    """PyTorch's addmm: rows of all batches, Gemm, and back."""
    s = Spelling(x=(2, 5, 8))
    rows = s("Reshape", "x", [10, 8])
    product = s("Gemm", rows, s.weight(6, 8), s.weight(6), transB=1)
    assert optimized(s.graph(s("Reshape", product, [2, 5, 6])), cost=LAUNCHES).ops == {"matmul": 1}


def test_chain_of_products_is_computed_in_the_cheap_order() -> None:
    """(A·B)·C with a wide A·B; B and C have no batch."""
    s = Spelling(a=(4, 256, 2), b=(2, 256), c=(256, 2))
    graph = s.graph(s("MatMul", s("MatMul", "a", "b"), "c"))
    assert largest_value(graph) == 4 * 256 * 256
    result = optimized(graph)
    assert result.ops == {"matmul": 2}
    assert largest_value(result.graph) == 4 * 256 * 2


def largest_value(graph: Graph) -> int:
    return max(part.size for kind in graph.types.values() for part in tensors_of(kind))


def test_transposes_of_both_operands_leave_the_product() -> None:
    s = Spelling(a=(2, 3, 4), b=(2, 4, 5))
    left = s("Transpose", "b", perm=[0, 2, 1])
    right = s("Transpose", "a", perm=[0, 2, 1])
    ops = optimized(s.graph(s("Transpose", s("MatMul", left, right), perm=[0, 2, 1]))).ops
    assert ops == {"matmul": 1}
