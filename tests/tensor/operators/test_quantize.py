"""Quantizing and dequantizing against onnxruntime, and how they are read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.machine import computed
from relational_tensat.tensor.operators import Mapped, get_operator
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read, read_back
from tests.tensor.operators.test_elementwise import drawn
from tests.tensor.operators.test_matmul import f32

PER_AXIS: list[tuple[tuple[int, ...], int]] = [((), 0), ((1,), 0), ((2,), 0), ((3,), 1), ((4,), 2)]


def scales(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(1).uniform(0.01, 0.2, shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "axis"), PER_AXIS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_quantizing_gives_the_integers_of_onnxruntime(
    shape: tuple[int, ...], axis: int, dtype: str
) -> None:
    zero = np.full(shape, 3, dtype)
    x = 20 * drawn((2, 3, 4))
    attrs: Any = {"axis": axis, "dtype": dtype}
    check_against_onnxruntime("quantize", [x, scales(shape), zero], attrs, 21, tolerance=0)
    assert read_back("quantize", [f32(2, 3, 4), f32(*shape), TensorType(dtype, shape)], attrs, 21)


@pytest.mark.parametrize(("shape", "axis"), PER_AXIS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_dequantizing(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x, zero = np.arange(24).reshape(2, 3, 4).astype(dtype), np.full(shape, 3, dtype)
    operands = [x, scales(shape)] if dtype == "int32" else [x, scales(shape), zero]
    check_against_onnxruntime("dequantize", operands, {"axis": axis}, 21, tolerance=1e-7)
    kinds = [TensorType(str(operand.dtype), operand.shape) for operand in operands]
    assert read_back("dequantize", kinds, {"axis": axis}, 21) == {
        "axis": axis,
        "stored": False,
    }


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("opset", [13, 21])
def test_quantizing_without_a_zero_point(dtype: str, opset: int) -> None:
    operands = [20 * drawn((2, 3)), scales(())]
    check_against_onnxruntime("quantize", operands, {"dtype": dtype}, opset, tolerance=0)


def test_halves_are_rounded_to_even_after_the_quotient_is_a_float32() -> None:
    """onnxruntime divides in float32: in float64 this quotient is below the half that it becomes."""
    x, scale = np.float32(0.15000000596046448), np.float32(0.10000000149011612)
    quotient = float(x) / float(scale)
    assert quotient != 1.5
    assert np.float32(quotient) == np.float32(1.5)
    kinds = (f32(1), f32())
    attrs: Any = {"axis": 0, "dtype": "int8"}
    operands = [np.array([float(x)]), np.array(float(scale))]
    result = computed("quantize", operands, kinds, attrs, TensorType("int8", (1,)))
    assert result.tolist() == [2]
    check_against_onnxruntime("quantize", [np.array([x]), np.array(scale), np.int8(0)], attrs, 21)


def test_what_is_no_number_or_has_no_scale_is_not_defined() -> None:
    quantize = get_operator("quantize")
    one = np.array(1.0)
    assert quantize.is_defined([one, one])
    assert not quantize.is_defined([one, 0 * one])
    assert not quantize.is_defined([np.array(np.nan), one])


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ((TensorType("float32", (2, 3)), f32()), "takes integers of 8 to 32 bits"),
        ((TensorType("int8", (2, 3)), f32(2)), "does not fit axis 1"),
        ((TensorType("int8", (2, 3)), f32(3), TensorType("uint8", (3,))), "the zero point is"),
        ((TensorType("int8", (2, 3)), TensorType("int8", ())), "expected floats"),
    ],
)
def test_what_does_not_fit_is_refused(kinds: tuple[TensorType, ...], message: str) -> None:
    axis = 0 if kinds[1].size == 1 else 1
    with pytest.raises(ShapeError, match=message):
        get_operator("dequantize").check(kinds, {"axis": axis})


def test_the_axis_of_one_scale_means_nothing() -> None:
    kinds = (TensorType("int8", (2, 3)), f32(), TensorType("int8", ()))
    assert get_operator("dequantize").canonical(kinds, {"axis": 1})["axis"] == 0


def test_blocks_stay_opaque() -> None:
    seen = node("DequantizeLinear", np.zeros((4, 4), np.int8), (2, 4), axis=0, block_size=2)
    assert read(seen) is None
    plain = node("DequantizeLinear", np.zeros((4, 4), np.int8), (4,), axis=-2)
    assert read(plain) == Mapped("dequantize", ("x0", "x1"), {"axis": 0, "stored": True})
