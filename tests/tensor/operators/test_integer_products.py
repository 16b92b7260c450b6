"""What dynamic quantization is made of, against onnxruntime, and how it is read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import ShapeError
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.operators import get_operator
from relational_tensat.verify.quantization import sums_saturate
from tests.tensor.operators.onnx_oracle import check_against_onnxruntime, node, read, read_back

RNG = np.random.default_rng(3)


def integers(dtype: str, *shape: int) -> Any:
    return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype)


def of(value: Any) -> TensorType:
    return TensorType(str(value.dtype), value.shape)


@pytest.mark.parametrize("zeros", [(), ((),), ((), ()), ((1,), (5,))])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_products_of_integers_are_those_of_onnxruntime(
    batch: tuple[int, ...], zeros: tuple[tuple[int, ...], ...]
) -> None:
    right = integers("int8", 4, 5)
    if (
        sums_saturate()
    ):  # of pairs of products, in 16 bits: on this processor the oracle is exact up to 64
        right //= 2
    factors = [integers("uint8", *batch, 3, 4), right]
    points = [integers(dtype, *s) for dtype, s in zip(("uint8", "int8"), zeros, strict=False)]
    values = [*factors, *points]
    check_against_onnxruntime("matmul_integer", values, {}, 17, tolerance=0)
    assert read_back("matmul_integer", [of(value) for value in values], {}, 17) == {}


def test_products_of_integers_refuse_what_has_no_meaning() -> None:
    product = get_operator("matmul_integer")
    a, b = TensorType("uint8", (3, 4)), TensorType("int8", (4, 5))
    for kinds in [
        (TensorType("float32", (3, 4)), b),
        (a, b, TensorType("int8", ())),
        (a, b, TensorType("uint8", (3,))),
        (a, b, TensorType("uint8", ()), TensorType("int8", (4,))),
    ]:
        with pytest.raises(ShapeError, match="matmul_integer"):
            product.check(kinds, {})


@pytest.mark.parametrize("shift", [-9.0, 0.0, 9.0])
def test_what_is_quantized_as_it_comes_is_what_onnxruntime_gives(shift: float) -> None:
    x = (RNG.standard_normal((4, 50)) + shift).astype(np.float32)
    check_against_onnxruntime("dynamic_quantize", [x], {}, 17, tolerance=0)


def test_zeros_are_quantized_to_zeros() -> None:
    quantized, scale, zero = get_operator("dynamic_quantize").evaluate([np.zeros((2, 2))], {})
    assert not quantized.any()
    assert (scale, zero) == (1, 0)


def test_a_result_that_is_left_out_is_not_understood() -> None:
    assert read(node("DynamicQuantizeLinear", (2,), outputs=("q", "s", "z"))) is not None
    assert read(node("DynamicQuantizeLinear", (2,), outputs=("q", "", "z"))) is None
