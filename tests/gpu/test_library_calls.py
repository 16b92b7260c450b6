"""What is handed to NVIDIA's libraries is what was asked for, held against the double."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from relational_tensat.gpu.calls import Convolution, Launch, Pooling, ProductCall, Ref
from relational_tensat.gpu.library_calls import (
    blas_product,
    convolution_epilogue,
    cudnn_fuses,
    cudnn_takes_pool,
    even_padding,
    own_launch,
    padded_bytes,
    with_padded_operand,
)
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.tensor import Node, build_graph
from tests.gpu.numpy_library import NumpyLibrary
from tests.gpu.runs import one_node
from tests.graphs import f32


class Memory:
    """Buffers by name on the double, filled with random numbers."""

    def __init__(self, **sizes: int) -> None:
        self.library = NumpyLibrary()
        self.addresses = {name: self.library.allocate(4 * size) for name, size in sizes.items()}
        self.sizes = sizes
        random = np.random.default_rng(0)
        for name, size in sizes.items():
            self.put(name, random.standard_normal(size).astype(np.float32))

    def put(self, name: str, values: Any) -> None:
        self.library.write(self.addresses[name], values.view(np.uint8))

    def get(self, name: str) -> Any:
        return self.library.read(self.addresses[name], 4 * self.sizes[name]).view(np.float32)

    def start(self, launch: Launch) -> None:
        self.library.bind(launch, lambda ref: self.addresses[ref.buffer]).start(0)


def _call(graph: Any) -> Any:
    (step,) = plan_graph(graph).steps
    return step.call


_PRODUCTS = [
    ((3, 4), (4, 5), None), ((3, 4), (4, 5), (5,)), ((3, 4), (4, 5), (3, 5)), ((3, 4), (4, 1), (1,)),
    ((6, 3, 4), (6, 4, 5), None), ((6, 3, 4), (6, 4, 5), (5,)), ((2, 3, 4), (4, 5), (5,)),
    ((3, 4), (6, 4, 5), (6, 1, 5)), ((1, 4), (4, 5), (5,)), ((2, 3, 3, 4), (2, 3, 4, 5), None),
]  # fmt: skip


@pytest.mark.parametrize("act", ["none", "relu", "tanh"])
@pytest.mark.parametrize(("a", "b", "bias"), _PRODUCTS)
def test_products_column_by_column(
    a: tuple[int, ...], b: tuple[int, ...], bias: tuple[int, ...] | None, act: str
) -> None:
    kinds = [f32(*shape) for shape in (a, b, bias) if shape is not None]
    _check_product(one_node("matmul", *kinds, act=act), act)


@pytest.mark.parametrize("act", ["none", "relu", "gelu_tanh"])
@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
def test_scaled_products_column_by_column(act: str, trans_a: bool, trans_b: bool) -> None:
    load_backend("cuda")
    for batch in ((), (3,)):
        a = f32(*batch, *((4, 5) if trans_a else (5, 4)))
        b = f32(*batch, *((6, 4) if trans_b else (4, 6)))
        attrs = {"act": act, "trans_a": trans_a, "trans_b": trans_b, "alpha": -0.5}
        _check_product(one_node("cuda_product", a, b, f32(6), **attrs), act)
        _check_product(one_node("cuda_product_add", a, b, f32(*batch, 5, 6), **attrs), act)


@pytest.mark.parametrize("is_right", [False, True])
def test_columns_of_a_matrix_are_factors_with_a_leading_dimension(is_right: bool) -> None:
    nodes = [Node("split", ("x",), ("a", "b"), {"axis": 1, "sizes": (4, 8)})]
    if is_right:
        nodes.append(Node("matmul", ("w", "b"), ("y",)))
        kinds = {"x": f32(6, 12), "w": f32(3, 5, 6)}
    else:
        nodes.append(Node("matmul", ("b", "w"), ("y",), {"act": "relu"}))
        kinds = {"x": f32(6, 12), "w": f32(8, 5)}
    graph = build_graph("columns", kinds, {}, nodes, ["y"])
    call = _call(graph)
    assert (call.b_pitch if is_right else call.a_pitch) == 12
    _check_product(graph, "none" if is_right else "relu")


def _check_product(graph: Any, act: str) -> None:
    """Check what cuBLASLt is asked for against our own kernel."""
    call: ProductCall = _call(graph)
    names: dict[str, Any] = {"c": call.c, "a": call.a, "b": call.b}
    names |= {name: ref for name in ("bias", "addend") if (ref := getattr(call, name)) is not None}
    of_buffer = {f"in:{name}": kind.size for name, kind in graph.inputs.items()}
    sizes = {name: of_buffer.get(ref.buffer, 0) for name, ref in names.items()}
    sizes["c"] = graph.output_types()[0].size
    memory = Memory(**sizes)
    places: dict[str, Any] = {name: Ref(name) for name in names}
    call = replace(call, **places)
    memory.start(own_launch(call))
    expected = memory.get("c")
    blas = blas_product(call)
    assert blas is not None
    memory.put("c", _as_blas_would(blas, call, memory, act))
    if blas.rest is not None:
        memory.start(blas.rest)
    np.testing.assert_allclose(memory.get("c"), expected, rtol=1e-5, atol=1e-5)


def _as_blas_would(blas: Any, call: ProductCall, memory: Memory, act: str) -> Any:
    """Column-major matrices: element (row, column) at column * height + row."""
    n, m, k = blas.rows, blas.columns, blas.depth
    result = np.zeros(blas.count * n * m, np.float32)
    for i in range(blas.count):
        b, a = memory.get("b")[i * blas.b_stride :], memory.get("a")[i * blas.a_stride :]
        left = _matrix(b, n, k, call.transposes_b, blas.b_pitch)
        right = _matrix(a, k, m, call.transposes_a, blas.a_pitch)
        product = call.alpha * left @ right
        if call.addend is not None:
            product += _matrix(memory.get("addend")[i * blas.c_stride :], n, m, False, n)
        if blas.bias:
            product = product + memory.get("bias")[:, None]
        if blas.act == "relu":
            product = np.maximum(product, 0)
        if blas.act == "gelu_tanh":
            inner = np.sqrt(2 / np.pi) * (product + 0.044715 * product**3)
            product = product / 2 * (1 + np.tanh(inner))
        start = i * blas.c_stride
        result[start : start + n * m] = product.reshape(-1, order="F")
    assert blas.act in ("none", act)
    return result


def _matrix(data: Any, rows: int, columns: int, is_transposed: bool, pitch: int) -> Any:
    """Return a matrix whose columns are so far apart in memory, or the transpose of one."""
    row, column = np.arange(rows)[:, None], np.arange(columns)
    return data[row * pitch + column if is_transposed else column * pitch + row]


def test_batches_of_several_axes_of_strides_stay_with_our_kernel() -> None:
    assert blas_product(_call(one_node("matmul", f32(2, 1, 3, 4), f32(1, 6, 4, 5)))) is None


@pytest.mark.parametrize("act", ["none", "relu", "tanh"])
@pytest.mark.parametrize("with_bias", [True, False])
def test_epilogues_of_convolutions(act: str, with_bias: bool) -> None:
    kinds = [f32(2, 4, 5, 5), f32(6, 4, 3, 3)] + [f32(6)] * with_bias
    graph = one_node("conv", *kinds, stride=(1, 1), pad="same", act=act)
    call: Convolution = _call(graph)
    memory = Memory(y=graph.output_types()[0].size, x=200, w=216, bias=6)
    places: dict[str, Any] = {"y": Ref("y"), "x": Ref("x"), "w": Ref("w")}
    call = replace(call, **places, bias=Ref("bias") if with_bias else None)
    memory.start(own_launch(call))
    expected = memory.get("y")
    memory.start(own_launch(replace(call, bias=None, act="none")))
    epilogue = convolution_epilogue(call)
    assert (epilogue is None) == (act == "none" and not with_bias)
    if epilogue is not None:
        memory.start(epilogue)
    np.testing.assert_allclose(memory.get("y"), expected, rtol=1e-5, atol=1e-5)


def test_what_cudnn_does_on_its_way_out() -> None:
    kinds = f32(2, 4, 5, 5), f32(6, 4, 3, 3)
    plain: Convolution = _call(one_node("conv", *kinds, stride=(1, 1), pad="same"))
    assert not cudnn_fuses(plain)  # there is nothing to do
    assert cudnn_fuses(replace(plain, act="relu"))
    assert not cudnn_fuses(replace(plain, bias=Ref("bias"), act="tanh"))
    for added in ("bias", "addend"):
        with_one: Any = {added: Ref(added)}
        assert cudnn_fuses(replace(plain, **with_one))


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad", "even"),
    [
        (8, 3, 1, "same", True), (8, 3, 2, "same", False), (7, 3, 2, "same", True),
        (8, 3, 2, "valid", True), (8, 3, 2, (1, 0), True), (8, 2, 1, "same", False),
        (8, 3, 1, (2, 0), False),
    ],
)  # fmt: skip
def test_padding_that_cudnn_has(size: int, kernel: int, stride: int, pad: Any, even: bool) -> None:
    graph = one_node("conv", f32(1, 4, size), f32(2, 4, kernel), stride=(stride,), pad=pad)
    call: Convolution = _call(graph)
    assert even_padding(call.windows) is even
    if even:
        return
    count = padded_bytes(call) // 4
    memory = Memory(y=graph.output_types()[0].size, x=4 * size, w=8 * kernel, padded=count)
    call = replace(call, y=Ref("y"), x=Ref("x"), w=Ref("w"))
    memory.start(own_launch(call))
    expected = memory.get("y")
    pad_launch, bare = with_padded_operand(call, Ref("padded"))
    assert even_padding(bare.windows)
    memory.start(pad_launch)
    memory.start(own_launch(bare))
    np.testing.assert_allclose(memory.get("y"), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "attrs", "taken"),
    [
        ("max_pool", {"pad": "valid"}, True),
        ("max_pool", {"pad": "valid", "act": "relu"}, False),
        ("max_pool", {"pad": "same"}, False),
        ("avg_pool", {"pad": (1, 1, 1, 1), "count_include_pad": True}, True),
        ("avg_pool", {"pad": (1, 1, 0, 0), "count_include_pad": True}, False),
        ("avg_pool", {"pad": "valid", "dilation": (2, 2)}, False),
        ("max_pool", {"pad": "valid", "ceil_mode": True}, False),
    ],
)
def test_pools_that_cudnn_has(op: str, attrs: dict[str, Any], taken: bool) -> None:
    graph = one_node(op, f32(1, 2, 8, 8), kernel=(3, 3), stride=(2, 2), **attrs)
    call: Pooling = _call(graph)
    assert cudnn_takes_pool(call) is taken
