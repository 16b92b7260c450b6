"""Which kernels onnxruntime makes of quantized models, and what counts as a loss."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat.verify.quantization import (
    Kernels,
    compare_quantized,
    file_bytes,
    is_quantized_kernel,
    runtime_kernels,
    sums_saturate,
)
from relational_tensat.verify.sessions import Session, open_session
from tests.formats.onnx_tools import constant
from tests.quantized_models import Quantized, two_products


@pytest.mark.parametrize(
    ("op", "is_one"),
    [
        ("QLinearConv", True),
        ("QGemm", True),
        ("MatMulInteger", True),
        ("MatMulIntegerToFloat", True),
        ("DynamicQuantizeMatMul", True),
        ("MatMulNBits", True),
        ("QuantizeLinear", False),
        ("DynamicQuantizeLinear", False),
        ("QuickGelu", False),
        ("MatMul", False),
    ],
)
def test_the_names_of_quantized_kernels(op: str, is_one: bool) -> None:
    assert is_quantized_kernel(op) == is_one


def kernels(**counts: int) -> Kernels:
    return Kernels.of(Counter(counts))


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [
        (kernels(QLinearMatMul=2), kernels(QLinearMatMul=2), ""),
        (kernels(QLinearMatMul=2), kernels(QLinearMatMul=1, Split=1), ""),
        (kernels(QLinearConcat=1, QLinearAdd=1), kernels(Concat=1, QLinearAdd=1), ""),
        (
            kernels(QLinearMatMul=2),
            kernels(QLinearMatMul=1, MatMul=1),
            "1 quantized kernels, the original 2",
        ),
        (
            kernels(QLinearMatMul=3),
            kernels(MatMulIntegerToFloat=1, QuantizeLinear=3),
            "3 conversions between integers and floats, the original 0",
        ),
        (
            kernels(MatMulIntegerToFloat=1),
            kernels(MatMulInteger=1, Cast=1, Mul=1),
            "3 kernels that compute, the original 1",
        ),
    ],
)
def test_losses(before: Kernels, after: Kernels, loss: str) -> None:
    assert before.loss(after) == loss


@pytest.mark.parametrize(
    ("before", "after", "saturates", "gain"),
    [
        (Kernels(2, 2, 1), Kernels(2, 2, 1), True, ""),
        (Kernels(2, 3, 1, 1), Kernels(3, 3, 1, 1), True, ""),  # a sum of two integers is exact
        (Kernels(1, 3, 1, 1), Kernels(2, 3, 1, 2), False, ""),
        (Kernels(1, 3, 1, 1), Kernels(2, 3, 1, 2), True, "2 products of integers"),
        (Kernels(2, 3, 1, 2), Kernels(1, 3, 1, 1, 0, 64.0), False, "64 bytes of weights"),
        (Kernels(2, 3, 1, 2), Kernels(1, 3, 1, 1, 1), False, "1 kernels that quantize operands"),
    ],
)
def test_gains(before: Kernels, after: Kernels, saturates: bool, gain: str) -> None:
    """Fewer kernels on integers in all do not make up for one that rounds what was a float."""
    found = before.gain(after, saturates=saturates)
    assert found.startswith(gain) and bool(found) == bool(gain)


def test_integers_that_the_file_has_are_rounded_by_nobody(tmp_path: Path) -> None:
    """However many nodes read them: onnxruntime copies zero points and weights for each."""
    path = tmp_path / "m.onnx"
    build = Quantized()
    x, weight = build.pair("x"), build.weight("w", 16, 16)
    for name in "ab":
        product = build.node("MatMul", [x, weight], name)
        build.node("Identity", [build.pair(product, 0.3)], f"y_{name}")
    onnx.save(build.model({"x": [4, 16]}, {"y_a": [4, 16], "y_b": [4, 16]}), path)
    assert runtime_kernels(path, 1) == Kernels(2, 2, 3, 2)
    floats = build.constant("v", np.ones((16, 16)), np.float32)
    build.node("Identity", [build.pair(build.node("MatMul", [x, floats], "c"), 0.3)], "y_c")
    onnx.save(build.model({"x": [4, 16]}, {f"y_{name}": [4, 16] for name in "abc"}), path)
    kernels = runtime_kernels(path, 1)
    assert kernels is not None and kernels.rounded_bytes in (0.0, 16 * 16)
    assert (kernels.products == 3) == (kernels.rounded_bytes > 0)


def test_products_saturate_where_a_quantized_product_does(tmp_path: Path) -> None:
    """The slow way: a whole model, as written and as it is run by default."""
    build = Quantized()
    build.constants.append(constant("w_q", np.full((64, 8), 127), np.int8))
    weight = build.node("DequantizeLinear", ["w_q", *build.parameters("w", 1.0)], "w")
    build.node(
        "Identity",
        [build.pair(build.node("MatMul", [build.pair("x", 1.0), weight], "m"), 1e4)],
        "y",
    )
    path = tmp_path / "m.onnx"
    onnx.save(build.model({"x": [1, 64]}, {"y": [1, 8]}), path)
    feeds = {"x": np.full((1, 64), 127.0, np.float32)}
    as_written, by_default = (
        open_session(path, 1, run_as).run(None, feeds)[0] for run_as in Session
    )
    assert sums_saturate() == (not np.array_equal(as_written, by_default))


def test_the_kernels_and_the_size_of_a_file(tmp_path: Path) -> None:
    path, larger = tmp_path / "m.onnx", tmp_path / "larger.onnx"
    original = two_products(0.3)
    onnx.save(original, path)
    assert runtime_kernels(path, 1) == Kernels(quantized=2, computing=2, conversions=3, products=2)
    original.doc_string = "longer " * 1000
    onnx.save(original, larger)
    check = compare_quantized(path, larger, 1)
    assert check is not None
    assert check.kernels == "quantized kernels in onnxruntime: 2, of the original 2"
    assert check.loss == ""
    assert check.growth.startswith(f"its file has {file_bytes(larger)} bytes")


def test_weights_in_files_of_their_own_count(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(two_products(0.3), path, save_as_external_data=True, location="d", size_threshold=64)
    assert file_bytes(path) == path.stat().st_size + (tmp_path / "d").stat().st_size


def test_an_original_that_cannot_be_run_is_compared_with_nothing(tmp_path: Path) -> None:
    """Fuzzing: onnxruntime's optimizations make an invalid model of a dequantized value cut twice."""
    (tmp_path / "m.onnx").write_bytes(b"no model")
    assert compare_quantized(tmp_path / "m.onnx", tmp_path / "m.onnx", 1) is None
