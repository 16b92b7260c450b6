"""Normalizations against onnxruntime, and how they are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import Array
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import (
    check_against_onnxruntime,
    compute,
    node,
    read,
    read_back,
)
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32


def batch_norm_operands(shape: tuple[int, ...]) -> list[Array]:
    vectors = [drawn((shape[1],), seed) for seed in range(4)]
    return [drawn(shape, 9), *vectors[:3], np.abs(vectors[3]) + np.float32(0.1)]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (1, 3, 4, 5), (1, 2, 3, 2, 2)])
@pytest.mark.parametrize("opset", [13, 20])
def test_batch_norm(shape: tuple[int, ...], opset: int) -> None:
    check_against_onnxruntime("batch_norm", batch_norm_operands(shape), {"epsilon": 1e-3}, opset)


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("opset", [13, 17, 18])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm(axis: int, opset: int, bias: bool) -> None:
    arrays = [drawn((2, 3, 4)), drawn((2, 3, 4)[axis:], 1), drawn((2, 3, 4)[axis:], 2)]
    attrs: Any = {"axis": axis, "epsilon": 1e-5}
    check_against_onnxruntime("layer_norm", arrays[: 2 + bias], attrs, opset)


@pytest.mark.parametrize("axis", [1, 2, -1])
@pytest.mark.parametrize("opset", [13, 18, 23])
def test_rms_norm(axis: int, opset: int) -> None:
    arrays = [drawn((2, 3, 4)), drawn((2, 3, 4)[axis:], 1)]
    check_against_onnxruntime("rms_norm", arrays, {"axis": axis, "epsilon": 1e-5}, opset)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    check_against_onnxruntime("softmax", [drawn((2, 3, 4)) * 30], {"axis": axis}, 13)


@pytest.mark.parametrize(
    ("op", "types", "attrs", "message"),
    [
        ("batch_norm", [f32(2, 3)] + [f32(3)] * 3 + [f32(2)], {"epsilon": 0.1}, "var .*expected"),
        ("batch_norm", [f32(3)] + [f32(3)] * 4, {"epsilon": 0.1}, "3 more dimensions"),
        ("batch_norm", [f32(2, 3)] + [f32(3)] * 3, {"epsilon": 0.1}, "takes 5 inputs, not 4"),
        ("layer_norm", [f32(2, 3), f32(2)], {"axis": 1, "epsilon": 0.1}, "scale .*expected"),
        ("layer_norm", [f32(2, 3), f32(3)], {"axis": 2, "epsilon": 0.1}, "not in 0..1"),
        (
            "rms_norm",
            [f32(2, 3), f32(2)],
            {"axis": 1, "epsilon": 0.1},
            "rms_norm: scale .*expected",
        ),
        ("softmax", [f32(2, 3)], {"axis": -1}, "axis -1 is not in 0..1"),
    ],
)
def test_misfits_are_refused(op: str, types: Any, attrs: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        get_operator(op).check(tuple(types), attrs)


def test_negative_axes_are_made_canonical() -> None:
    assert get_operator("softmax").canonical((f32(2, 3),), {"axis": -1}) == {"axis": 1}
    with pytest.raises(ShapeError, match=r"not in -2\.\.1"):
        get_operator("softmax").canonical((f32(2, 3),), {"axis": -3})


def test_reading_normalizations() -> None:
    seen = node("BatchNormalization", (2, 3), (3,), (3,), (3,), (3,))
    assert read(seen) == Mapped("batch_norm", seen.inputs, {"epsilon": 1e-5})
    seen = node("LayerNormalization", (2, 3, 4), (4,), epsilon=1e-3)
    assert read(seen) == Mapped("layer_norm", ("x0", "x1"), {"axis": 2, "epsilon": 1e-3})
    seen = node("RMSNormalization", (2, 3, 4), (3, 4), opset=23, axis=1)
    assert read(seen) == Mapped("rms_norm", ("x0", "x1"), {"axis": 1, "epsilon": 1e-5})
    assert read(node("Softmax", (2, 3, 4))) == Mapped("softmax", ("x0",), {"axis": 2})


@pytest.mark.parametrize(
    "seen",
    [
        node("BatchNormalization", (2, 3), *[(3,)] * 4, training_mode=1),
        node("BatchNormalization", (2, 3, 4), *[(3, 4)] * 4, opset=7, spatial=0),
        node("BatchNormalization", (2, 3), *[(3,)] * 4, opset=9, outputs=("y", "m")),
        node("LayerNormalization", (2, 3), (3,), outputs=("y", "mean")),
        node("LayerNormalization", (2, 3), ()),
    ],
    ids=["training", "not spatial", "statistics", "mean", "scalar scale"],
)
def test_others_are_opaque(seen: Any) -> None:
    assert read(seen) is None


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 3), 1), ((2, 5, 1, 1), 1), ((2, 3, 4), 1), ((2, 3, 4), 0), ((3, 4), 2)]
)
def test_softmax_of_old_versions_flattens(shape: tuple[int, ...], axis: int) -> None:
    seen = node("Softmax", shape, opset=11, axis=axis)
    mapped = read(seen)
    assert mapped is not None
    x = drawn(shape, dtype="float64")
    flat = np.exp(x.reshape(int(np.prod(shape[:axis])), -1))
    expected = (flat / flat.sum(axis=1, keepdims=True)).reshape(shape)
    np.testing.assert_allclose(compute(mapped, seen, [x]), expected)


def test_softmax_of_old_versions_is_one_softmax_where_it_can_be() -> None:
    mapped = read(node("Softmax", (2, 5, 1, 1), opset=11))
    assert mapped == Mapped("softmax", ("x0",), {"axis": 1})


def test_read_back() -> None:
    attrs: Any = {"axis": 1, "epsilon": 0.5}
    assert read_back("layer_norm", [f32(2, 3, 4), f32(3, 4)], attrs) == attrs
    types = [f32(2, 3), *[f32(3)] * 4]
    assert read_back("batch_norm", types, {"epsilon": 0.25}) == {"epsilon": 0.25}
    assert read_back("softmax", [f32(2, 3)], {"axis": 0}) == {"axis": 0}
