"""Which kernels onnxruntime makes of quantized models, and what counts as a loss."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest

from relational_tensat.verify.quantized import (
    Kernels,
    compare_quantized,
    file_bytes,
    is_quantized_kernel,
    runtime_kernels,
)
from tests.quantized_models import two_products


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


def test_the_kernels_and_the_size_of_a_file(tmp_path: Path) -> None:
    path, larger = tmp_path / "m.onnx", tmp_path / "larger.onnx"
    original = two_products(0.3)
    onnx.save(original, path)
    assert runtime_kernels(path, 1) == Kernels(quantized=2, computing=2, conversions=3)
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
