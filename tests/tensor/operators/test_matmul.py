"""Matrix products against onnxruntime, and how MatMul and Gemm are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import (
    check_against_onnxruntime,
    compute,
    node,
    read,
    read_back,
)
from tests.tensor.operators.test_elementwise import drawn


def f32(*shape: int) -> TensorType:
    return TensorType("float32", shape)


@settings(max_examples=12, deadline=None)
@given(
    sizes=st.tuples(*[st.integers(1, 5)] * 3),
    batches=st.sampled_from([((), ()), ((2,), ()), ((2, 3), (3,)), ((1, 3), (2, 1)), ((), (2,))]),
    bias=st.sampled_from([None, "row", "scalar", "full"]),
    act=st.sampled_from(["none", "relu", "sigmoid", "tanh"]),
)
def test_matmul(sizes: Any, batches: Any, bias: str | None, act: str) -> None:
    m, k, n = sizes
    arrays = [drawn((*batches[0], m, k), 1), drawn((*batches[1], k, n), 2)]
    if bias is not None:
        full = np.matmul(*arrays).shape
        arrays.append(drawn({"row": (n,), "scalar": (), "full": full}[bias], 3))
    check_against_onnxruntime("matmul", arrays, {"act": act}, 13)


def test_products_of_nothing() -> None:
    product = get_operator("matmul").evaluate(
        [np.ones((0, 2, 3)), np.ones((3, 4))], {"act": "none"}
    )
    assert product.shape == (0, 2, 4)
    product = get_operator("matmul").evaluate(
        [np.ones((2, 2, 0)), np.ones((0, 4))], {"act": "none"}
    )
    assert product.shape == (2, 2, 4) and not product.any()


def test_matmul_of_integers() -> None:
    arrays = [drawn((2, 3), 1, "int32"), drawn((3, 4), 2, "int32")]
    check_against_onnxruntime("matmul", arrays, {})


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([f32(2, 3), f32(2, 3)], "differ in the summed dimension"),
        ([f32(3), f32(3, 2)], "ranks of 2 and more"),
        ([f32(2, 2, 3), f32(3, 3, 4)], "do not broadcast"),
        ([f32(2, 3), f32(3, 4), f32(2, 2, 4)], "does not broadcast into"),
        ([f32(2, 3), f32(3, 4), f32(3)], "do not broadcast"),
        ([f32(2, 3), TensorType("float16", (3, 4))], "one element type"),
    ],
)
def test_misfits_are_refused(types: list[TensorType], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator("matmul").check(tuple(types), {})


def test_a_fused_activation_must_be_known() -> None:
    with pytest.raises(ShapeError, match="did you mean 'relu'"):
        get_operator("matmul").check((f32(2, 3), f32(3, 4)), {"act": "rlu"})


def test_flops_and_bytes() -> None:
    matmul = get_operator("matmul")
    types = (f32(7, 2, 3), f32(3, 5), f32(5))
    output = matmul.check(types, {})
    attrs = matmul.normalize({"act": "relu"})
    assert matmul.flops(types, output, attrs) == 2 * 7 * 2 * 3 * 5 + 7 * 2 * 5
    assert matmul.bytes_moved(types, output, attrs) == 4 * (42 + 15 + 5 + 70)


@pytest.mark.parametrize("left", [(3,), (2, 3), (4, 2, 3)])
@pytest.mark.parametrize("right", [(3,), (3, 5), (4, 3, 5)])
def test_vectors_in_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    seen = node("MatMul", left, right)
    mapped = read(seen)
    assert mapped is not None
    a, b = drawn(left, 1), drawn(right, 2)
    result = compute(mapped, seen, [a, b])
    np.testing.assert_allclose(result, np.matmul(a, b), rtol=1e-5)
    assert np.shape(result) == np.matmul(a, b).shape


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 1.0), (1.0, 2.0), (0.5, 0.0)])
def test_gemm(trans_a: int, trans_b: int, alpha: float, beta: float) -> None:
    a, b, c = (
        drawn((3, 2) if trans_a else (2, 3), 1),
        drawn((4, 3) if trans_b else (3, 4), 2),
        drawn((4,), 3),
    )
    seen = node(
        "Gemm", a.shape, b.shape, c.shape, transA=trans_a, transB=trans_b, alpha=alpha, beta=beta
    )
    mapped = read(seen)
    assert mapped is not None
    expected = alpha * (a.T if trans_a else a) @ (b.T if trans_b else b) + beta * c
    np.testing.assert_allclose(compute(mapped, seen, [a, b, c]), expected, rtol=1e-5, atol=1e-6)


def test_gemm_with_defaults_is_one_matmul() -> None:
    assert read(node("Gemm", (2, 3), (3, 4), (4,))) == Mapped(
        "matmul", ("x0", "x1", "x2"), {"act": "none"}
    )
    assert read(node("Gemm", (2, 3), (3, 4))) == Mapped("matmul", ("x0", "x1"), {"act": "none"})


def test_gemm_of_scaled_integers_is_opaque() -> None:
    assert read(node("Gemm", (2, 3), (3, 4), dtype="int32", alpha=0.5)) is None


def test_gemm_is_read_back() -> None:
    assert read_back("matmul", [f32(2, 3), f32(3, 4), f32(4)], {}) == {"act": "none"}
