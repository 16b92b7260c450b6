"""Every operator, lowered and run in NumPy, gives what it means."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.gpu.calls import ProductCall
from relational_tensat.gpu.catalogue import (
    BINARY_CODES,
    COMPARISON_CODES,
    LOGIC_CODES,
    REDUCTION_CODES,
    UNARY_CODES,
)
from relational_tensat.gpu.kernel_calls import _FUSED, _LOWERINGS
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.tensor import Node, TensorType, build_graph
from relational_tensat.tensor.operators import operators
from tests.gpu.cases import guarded, kernel_cases
from tests.gpu.runs import check, one_node
from tests.graphs import f32

FLOATS = ("float32", "float16", "bfloat16")
_NOT_LOWERED = {"input", "weight", "fill", "noop", "part", "opaque"}
#: Quantized values, group norms, hard sigmoids and others have no kernels here yet: measuring says so.
_WITHOUT_KERNELS = {
    "quantize", "dequantize", "dynamic_quantize", "matmul_integer", "hard_sigmoid", "hard_swish",
    "leaky_relu", "reduce_l2", "cos", "sin", "group_norm", "conv_transpose",
}  # fmt: skip


@pytest.mark.usefixtures("plain_operators")
def test_every_operator_is_lowered() -> None:
    assert set(_LOWERINGS) == set(operators()) - _NOT_LOWERED - _WITHOUT_KERNELS


def test_every_kernel_of_the_target_is_lowered() -> None:
    assert set(_FUSED) == {kernel.name for kernel in load_backend("cuda").kernels}
    for dtype in FLOATS:
        met = set()
        for graph in kernel_cases(dtype):
            assert sum(check(graph).bound.values()) == 1  # one launch
            met.add(graph.name)
        assert met == set(_FUSED)


@pytest.mark.parametrize("dtype", FLOATS)
def test_unary(dtype: str) -> None:
    for op in UNARY_CODES:
        if op not in ("clip", "smul", "gelu_tanh"):
            check(one_node(op, TensorType(dtype, (3, 7))))


def test_unary_with_attributes() -> None:
    check(one_node("clip", f32(4, 5), min=-0.5, max=0.25))
    check(one_node("clip", f32(4, 5), max=0.25))
    check(one_node("smul", f32(4, 5), value=-2.5))
    check(one_node("gelu", f32(4, 5), approximate="tanh"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((), ()), ((5,), ()), ((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 3, 4), (3, 1)),
        ((1, 3, 1), (2, 1, 4)), ((2, 1, 3, 1, 2), (1, 2, 1, 2, 1)), ((1, 1), (6, 1)),
    ],
)  # fmt: skip
def test_binary_broadcasts(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for op in BINARY_CODES:
        check(one_node(op, f32(*left), f32(*right)))


def test_binary_of_more_axes_than_the_kernel_has_is_refused() -> None:
    graph = one_node("add", f32(2, 1, 2, 1, 2, 1), f32(1, 2, 1, 2, 1, 2))
    with pytest.raises(InputError, match=r"node 'node' \(add\): .* 5 axes at most, not 6"):
        plan_graph(graph)


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "bool"])
def test_choices_broadcast(dtype: str) -> None:
    kinds = TensorType(dtype, (3, 1)), TensorType(dtype, (2, 1, 4))
    check(one_node("where", TensorType("bool", (3, 4)), *kinds))
    check(one_node("expand", kinds[0], shape=(2, 3, 5)))
    check(one_node("expand", kinds[0], shape=(1, 3, 1)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_comparisons_broadcast_and_nan_compares_to_nothing(dtype: str) -> None:
    values = np.array([[-1.0, 0.0, 1.0, np.nan]], np.float32)
    for op in COMPARISON_CODES:
        graph = one_node(op, TensorType(dtype, (1, 4)), TensorType(dtype, (4, 1)))
        check(graph, dict(zip(graph.inputs, (values, values.T), strict=True)))


def test_conditions_broadcast() -> None:
    both = np.array([[False, True]])
    for op in LOGIC_CODES:
        kinds = [TensorType("bool", (1, 2)), TensorType("bool", (2, 1))]
        graph = one_node(op, *kinds[: 1 if op == "logical_not" else 2])
        check(graph, dict(zip(graph.inputs, (both, both.T), strict=False)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_is_no_number_is_replaced(dtype: str) -> None:
    graph = guarded(TensorType(dtype, (3, 4)))
    check(graph, {"x": np.linspace(-2.0, 2.0, 12, dtype=np.float32).reshape(3, 4)})


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2), (1, 3)])
def test_reductions(axes: tuple[int, ...]) -> None:
    for op, keepdims in itertools.product(REDUCTION_CODES, (True, False)):
        check(one_node(op, f32(3, 4, 5, 2), axes=axes, keepdims=keepdims))


def test_reductions_over_axes_of_size_one_are_views() -> None:
    graph = one_node("reduce_max", f32(3, 1, 2), axes=(1,), keepdims=False)
    check(graph)
    assert plan_graph(graph).steps == ()


@pytest.mark.parametrize(
    ("shape", "perm"),
    [
        ((3, 5), (1, 0)), ((2, 3, 5), (0, 2, 1)), ((2, 3, 4), (1, 0, 2)), ((2, 3, 5), (1, 2, 0)),
        ((2, 3, 4, 5), (0, 2, 1, 3)), ((2, 3, 4, 5), (3, 1, 0, 2)), ((2, 3, 4, 5), (0, 1, 3, 2)),
        ((2, 3, 4, 5), (2, 3, 0, 1)), ((40, 50), (1, 0)), ((2, 3, 16), (1, 0, 2)),
    ],
)  # fmt: skip
def test_transposes(shape: tuple[int, ...], perm: tuple[int, ...]) -> None:
    for dtype in ("float32", "float16", "int64", "bool"):
        library = check(one_node("transpose", TensorType(dtype, shape), perm=perm))
        assert sum(library.bound.values()) == 1, dtype


def test_runs_that_stay_together_move_as_larger_elements() -> None:
    kernels = check(one_node("transpose", f32(2, 3, 16), perm=(1, 0, 2))).bound
    assert list(kernels) == ["strided_copy<u128>"]
    kernels = check(one_node("transpose", f32(2, 3, 6), perm=(1, 0, 2))).bound
    assert list(kernels) == ["strided_copy<u64>"]
    assert list(check(one_node("concat", f32(2, 4), f32(2, 8), axis=1)).bound) == ["concat<u128>"]
    assert list(check(one_node("concat", f32(2, 3), f32(2, 8), axis=1)).bound) == ["concat<u32>"]


@pytest.mark.parametrize(
    "graph",
    [
        one_node("reshape", f32(2, 6), shape=(3, 4)),
        one_node("identity", f32(2)),
        one_node("transpose", f32(1, 5, 1), perm=(2, 0, 1)),
        one_node("split", f32(1, 8, 4), axis=1, sizes=(4, 4)),
        one_node("slice", f32(8, 4), axes=(0,), starts=(2,), ends=(6,), steps=(1,)),
        one_node("concat", f32(8, 4), axis=0),
        one_node("cast", f32(3), dtype="float32"),
    ],
    ids=lambda graph: graph.name,
)
def test_what_lies_in_one_piece_is_a_view(graph: Any) -> None:
    check(graph)
    assert plan_graph(graph).steps == ()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_concat_and_split(axis: int) -> None:
    shapes = [tuple(k if i == axis else s for i, s in enumerate((2, 3, 4))) for k in (1, 5, 2)]
    check(one_node("concat", *(f32(*shape) for shape in shapes), axis=axis))
    whole = tuple(8 if i == axis else s for i, s in enumerate((2, 3, 4)))
    check(one_node("split", f32(*whole), axis=axis, sizes=(1, 5, 2)))


def test_concat_and_split_of_more_parts_than_a_launch_takes() -> None:
    library = check(one_node("concat", *(f32(3, n) for n in range(1, 20)), axis=1))
    assert library.bound["concat<u32>"] == 3
    library = check(one_node("split", f32(3, 38), axis=1, sizes=(2,) * 19))
    assert library.bound["split<u64>"] == 3


@pytest.mark.parametrize(
    "cut",
    [
        {"axes": (0,), "starts": (1,), "ends": (3,), "steps": (1,)},
        {"axes": (1,), "starts": (0,), "ends": (5,), "steps": (2,)},
        {"axes": (0, 2), "starts": (1, 1), "ends": (4, 4), "steps": (2, 1)},
        {"axes": (2,), "starts": (-2,), "ends": (9,), "steps": (1,)},
    ],
)
def test_slices(cut: dict[str, tuple[int, ...]]) -> None:
    check(one_node("slice", f32(4, 5, 6), **cut))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("index", ["int64", "int32"])
def test_gathers(axis: int, index: str) -> None:
    graph = one_node("gather", f32(3, 4, 6), TensorType(index, (2, 2)), axis=axis)
    x = np.random.default_rng(0).standard_normal((3, 4, 6)).astype(np.float32)
    check(graph, {"x0": x, "x1": np.array([[0, -1], [2, -3]], index)})


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
def test_pads(mode: str, dtype: str) -> None:
    kind = TensorType(dtype, (3, 4, 5))
    check(one_node("pad", kind, pads=(0, 2, 1, 1, 0, 3), mode=mode, value=-1.0))


def test_weights_rearranged() -> None:
    check(one_node("enlarge", f32(4, 3, 1, 2), f32(2, 2, 3, 5)))
    check(one_node("enlarge", f32(4, 3, 2), f32(2, 2, 5)))
    for count, groups in ((2, 4), (4, 4), (1, 2), (3, 6)):
        check(one_node("merge", f32(12, 3, 2, 2), count=count, groups=groups))


@pytest.mark.parametrize("dtype", FLOATS)
def test_norms(dtype: str) -> None:
    x = TensorType(dtype, (2, 3, 8))
    scale = TensorType(dtype, (8,))
    check(one_node("layer_norm", x, scale, scale, axis=2, epsilon=1e-3))
    check(one_node("layer_norm", x, scale, axis=-1, epsilon=1e-3))
    check(one_node("rms_norm", x, TensorType(dtype, (3, 8)), axis=1, epsilon=1e-3))
    for axis in (0, 1, 2):
        check(one_node("softmax", x, axis=axis))
    image = TensorType(dtype, (2, 3, 4, 2))
    check(one_node("batch_norm", image, *[TensorType(dtype, (3,))] * 4, epsilon=1e-3))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("float32", "float16"), ("float32", "bfloat16"), ("bfloat16", "float32"),
        ("float32", "int64"), ("int64", "float32"), ("float32", "bool"), ("bool", "float32"),
        ("int32", "int64"), ("int64", "bool"), ("float64", "float32"), ("uint8", "float16"),
    ],
)  # fmt: skip
def test_casts(source: str, target: str) -> None:
    check(one_node("cast", TensorType(source, (3, 5)), dtype=target))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("a", "b", "bias"),
    [
        ((3, 4), (4, 5), None), ((3, 4), (4, 5), (5,)), ((3, 4), (4, 5), (3, 1)),
        ((3, 4), (4, 5), (3, 5)), ((3, 4), (4, 5), ()), ((2, 3, 4), (2, 4, 5), (2, 1, 5)),
        ((2, 3, 4), (4, 5), (5,)), ((2, 3, 4), (4, 5), (3, 1)), ((3, 4), (2, 4, 5), None),
        ((2, 1, 3, 4), (1, 6, 4, 5), (6, 1, 1)), ((1, 3, 4), (4, 5), (1, 1, 5)),
    ],
)  # fmt: skip
def test_products(
    a: tuple[int, ...], b: tuple[int, ...], bias: tuple[int, ...] | None, dtype: str
) -> None:
    kinds = [TensorType(dtype, shape) for shape in (a, b, bias) if shape is not None]
    for act in ("none", "relu", "tanh"):
        check(one_node("matmul", *kinds, act=act))


def test_a_batch_that_shares_its_right_factor_is_one_product() -> None:
    (step,) = plan_graph(one_node("matmul", f32(2, 3, 4), f32(4, 5), f32(5))).steps
    assert isinstance(step.call, ProductCall)
    assert (step.call.m, step.call.batches) == (6, (1, 1, 1))


_CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 6, 7), (3, 4, 3, 3), {"stride": (1, 1), "pad": "same"}),
    ((2, 4, 6, 7), (3, 4, 3, 3), {"stride": (2, 2), "pad": "same"}),
    ((1, 4, 7, 7), (6, 2, 3, 1), {"stride": (1, 2), "pad": "valid"}),
    ((1, 4, 7, 7), (4, 1, 3, 3), {"stride": (1, 1), "pad": "same"}),
    ((2, 4, 7, 7), (8, 1, 3, 3), {"stride": (2, 1), "pad": (1, 0, 2, 1)}),
    ((1, 2, 9), (4, 2, 3), {"stride": (2,), "pad": (1, 2), "dilation": (2,)}),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 1), {"stride": (1, 1, 1), "pad": "same"}),
]


@pytest.mark.parametrize(("x", "w", "attrs"), _CONVOLUTIONS)
def test_convolutions(x: tuple[int, ...], w: tuple[int, ...], attrs: dict[str, Any]) -> None:
    check(one_node("conv", f32(*x), f32(*w), **attrs))
    check(one_node("conv", f32(*x), f32(*w), f32(w[0]), **attrs, act="sigmoid"))


_POOLS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 6, 7), {"kernel": (3, 3), "stride": (2, 2), "pad": "same"}),
    ((2, 3, 6, 7), {"kernel": (2, 3), "stride": (1, 2), "pad": "valid"}),
    ((1, 2, 8, 8), {"kernel": (3, 3), "stride": (2, 2), "pad": (0, 1, 1, 0), "ceil_mode": True}),
    ((1, 2, 9), {"kernel": (3,), "stride": (2,), "pad": (1, 1), "dilation": (2,)}),
    ((1, 2, 4, 4, 5), {"kernel": (2, 2, 2), "stride": (2, 1, 2), "pad": "valid"}),
]


@pytest.mark.parametrize(("x", "attrs"), _POOLS)
def test_pools(x: tuple[int, ...], attrs: dict[str, Any]) -> None:
    check(one_node("max_pool", f32(*x), **attrs, act="relu"))
    for include in (False, True):
        check(one_node("avg_pool", f32(*x), **attrs, count_include_pad=include))


def test_a_tuple_is_its_parts() -> None:
    nodes = [
        Node("relu", ("x",), ("a",)),
        Node("noop", ("a", "x"), ("pair",)),
        Node("concat", ("pair",), ("joined",), {"axis": 0}),
        Node("noop", ("joined", "pair"), ("all",)),
    ]
    check(build_graph("tuples", {"x": f32(2, 3)}, {}, nodes, ["all"]))


def test_what_has_no_kernel_is_refused_with_the_place() -> None:
    graph = one_node("add", TensorType("int64", (2,)), TensorType("int64", (2,)))
    with pytest.raises(InputError, match=r"node 'node' \(add\): no GPU kernel for add of int64"):
        plan_graph(graph)
