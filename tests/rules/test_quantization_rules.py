"""What the rules about quantized values make of quantized models, in the file and in onnxruntime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat import Options, Result, optimize
from relational_tensat.base.files import resource_dir
from relational_tensat.verify import quantization
from relational_tensat.verify.quantization import runtime_kernels
from tests.quantized_models import Quantized, mean_before_reshape, residual_block, two_products
from tests.tiers import nightly


def optimized(
    model: onnx.ModelProto, folder: Path, *families: str, multi_iterations: int = 1
) -> tuple[Result, onnx.ModelProto, Path]:
    """Optimize with some families of rules; return the result, what was written, and where."""
    source, target = folder / "m.onnx", folder / "out.onnx"
    onnx.save(model, source)
    rules = tuple(resource_dir("rules") / f"{name}.rules" for name in ("quantization", *families))
    result = optimize(
        source, Options.of(cost="t4", rules=rules, multi_iterations=multi_iterations), output=target
    )
    assert target.stat().st_size <= source.stat().st_size
    return result, onnx.load(target), target


def ops(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def dtypes(model: onnx.ModelProto) -> Counter[int]:
    """How many elements the initializers of each element type have."""
    sizes: Counter[int] = Counter()
    for tensor in model.graph.initializer:
        sizes[tensor.data_type] += int(np.prod(tensor.dims, dtype=int))
    return sizes


def test_pools_and_transposes_move_integers(tmp_path: Path) -> None:
    build = Quantized()
    parameters = ["x_scale", "x_zero"]
    value = build.pair("x")
    value = build.node("MaxPool", [value], "p", kernel_shape=[2, 2], strides=[2, 2])
    value = build.node("QuantizeLinear", [value, *parameters], "pq")
    value = build.node("DequantizeLinear", [value, *parameters], "pd")
    value = build.node("Transpose", [value], "t", perm=[0, 2, 3, 1])
    value = build.node("QuantizeLinear", [value, *parameters], "tq")
    build.node("DequantizeLinear", [value, *parameters], "y")
    original = build.model({"x": [1, 4, 8, 8]}, {"y": [1, 4, 4, 4]})
    _, written, _ = optimized(original, tmp_path)
    assert ops(written) == {
        "QuantizeLinear": 1, "MaxPool": 1, "Transpose": 1, "DequantizeLinear": 1
    }  # fmt: skip
    order = [node.op_type for node in written.graph.node]
    assert order[0] == "QuantizeLinear"
    assert order[-1] == "DequantizeLinear"


@pytest.mark.parametrize("count", [2, 3, 4])
def test_concatenations_join_integers(tmp_path: Path, count: int) -> None:
    build = Quantized()
    parameters = ["x0_scale", "x0_zero"]
    for place in range(count):
        name = f"x{place}"
        used = parameters if place else build.parameters(name, 0.05, 128, np.uint8)
        build.node("QuantizeLinear", [name, *used], f"{name}_q")
        build.node("DequantizeLinear", [f"{name}_q", *used], f"{name}_dq")
    joined = build.node("Concat", [f"x{place}_dq" for place in range(count)], "c", axis=1)
    build.node("QuantizeLinear", [joined, *parameters], "q")
    build.node("DequantizeLinear", ["q", *parameters], "y")
    model = build.model({f"x{place}": [2, 4] for place in range(count)}, {"y": [2, 4 * count]})
    _, written, _ = optimized(model, tmp_path)
    assert ops(written) == {"QuantizeLinear": count, "Concat": 1, "DequantizeLinear": 1}


@pytest.mark.parametrize("axis", [None, 1])
def test_parallel_products_become_one_kernel_on_integers(tmp_path: Path, axis: int | None) -> None:
    _, written, path = optimized(two_products(0.3, axis), tmp_path, "merge", "identity")
    assert ops(written)["MatMul"] == 1
    assert dtypes(written)[onnx.TensorProto.INT8] >= 2 * 64 * 64
    kernels = runtime_kernels(path, 1)
    assert kernels is not None
    assert (kernels.quantized, kernels.computing) == (1, 1)


def test_parallel_convolutions_with_scales_of_their_own_become_one(tmp_path: Path) -> None:
    build = Quantized()
    x = build.pair("x")
    for name in "ab":
        build.node("Conv", [x, build.weight(f"w_{name}", 8, 4, 3, 3)], name)
        build.node("Identity", [build.pair(name, 0.3)], f"y_{name}")
    model = build.model({"x": [1, 4, 8, 8]}, {"y_a": [1, 8, 6, 6], "y_b": [1, 8, 6, 6]})
    result, written, path = optimized(model, tmp_path, "merge", "identity")
    assert ops(written)["Conv"] == 1
    assert result.verification.max_relative_error == 0.0
    kernels = runtime_kernels(path, 1)
    assert kernels is not None
    assert kernels.quantized == 1


def test_a_transposed_weight_is_transposed_as_integers(tmp_path: Path) -> None:
    """Exporters write Gemm with transB: a Transpose beside it would be no pattern for a QGemm."""
    build = Quantized()
    x = build.pair("x")
    build.node("Gemm", [x, build.weight("w", 8, 16)], "g", transB=1)
    relu = build.node("Relu", [build.pair("g", 0.3)], "r")
    build.node("Relu", [relu], "y")  # something to save
    result, written, path = optimized(
        build.model({"x": [4, 16]}, {"y": [4, 8]}), tmp_path, "identity", "elementwise", "fusion"
    )
    assert result.cost_after_us < result.cost_before_us
    assert "Transpose" not in ops(written)
    kernels = runtime_kernels(path, 1)
    assert kernels is not None
    assert kernels.quantized == 1


def test_a_factor_of_weights_goes_into_their_scales(tmp_path: Path) -> None:
    build = Quantized()
    product = build.node("MatMul", ["x", build.weight("w", 16, 16, axis=1)], "m")
    build.node("Mul", [product, build.constant("half", 0.5, np.float32)], "y")
    _, written, _ = optimized(
        build.model({"x": [4, 16]}, {"y": [4, 16]}), tmp_path, "numbers", "matmul"
    )
    assert ops(written) == {"DequantizeLinear": 1, "MatMul": 1}
    assert dtypes(written)[onnx.TensorProto.INT8] >= 16 * 16


@pytest.mark.parametrize("axis", [None, 0])
def test_a_norm_behind_a_convolution_goes_into_the_scales_of_its_weights(
    tmp_path: Path, axis: int | None
) -> None:
    build = Quantized()
    numbers = np.random.default_rng(1)
    vectors = {
        "scale": numbers.uniform(0.5, 2, 8),
        "bias": numbers.standard_normal(8),
        "mean": numbers.standard_normal(8),
        "variance": numbers.uniform(0.5, 2, 8),
    }
    build.node("Conv", ["x", build.weight("w", 8, 4, 3, 3, axis=axis)], "c")
    names = [build.constant(name, vector, np.float32) for name, vector in vectors.items()]
    build.node("BatchNormalization", ["c", *names], "y")
    model = build.model({"x": [1, 4, 8, 8]}, {"y": [1, 8, 6, 6]})
    _, written, _ = optimized(model, tmp_path, "norm")
    assert ops(written) == {"DequantizeLinear": 1, "Conv": 1}
    assert dtypes(written)[onnx.TensorProto.INT8] >= 8 * 4 * 3 * 3


def test_relu_before_integers_that_have_none_below_zero_is_dropped(tmp_path: Path) -> None:
    build = Quantized()
    relu = build.node("Relu", ["x"], "r")
    parameters = build.parameters("r", 0.1, 0, np.uint8)
    quantized = build.node("QuantizeLinear", [relu, *parameters], "q")
    build.node("DequantizeLinear", [quantized, *parameters], "y")
    _, written, _ = optimized(build.model({"x": [4, 16]}, {"y": [4, 16]}), tmp_path)
    assert ops(written) == {"QuantizeLinear": 1, "DequantizeLinear": 1}


def test_a_rule_that_costs_quantized_kernels_is_left_out(tmp_path: Path) -> None:
    """A mean that keeps no axes needs no reshape behind it, and has no kernel on integers."""
    result, written, path = optimized(
        mean_before_reshape(), tmp_path, "reduce", "layout", "identity"
    )
    (rejection,) = result.rejections
    assert rejection.rule == "kept-axes-are-a-reshape[reduce_mean]"
    assert "makes the result worse: onnxruntime ends up with" in rejection.why
    assert rejection.why in result.notes
    assert rejection.reproduction == ()
    assert ops(written) == {
        "QuantizeLinear": 2, "GlobalAveragePool": 1, "Reshape": 1, "DequantizeLinear": 2
    }  # fmt: skip
    kernels = runtime_kernels(path, 1)
    assert kernels is not None
    assert kernels.quantized == 1


def test_a_rule_at_fault_is_found_where_a_value_is_made_of_its_own_integers(tmp_path: Path) -> None:
    """a + b where b is a, quantized once more: 2·a is no QLinearAdd, though b may be a."""
    build = Quantized()
    first = build.pair("x")
    parameters = ["x_scale", "x_zero"]
    again = build.node("QuantizeLinear", [first, *parameters], "q")
    second = build.node("DequantizeLinear", [again, *parameters], "d")
    build.node("Add", [second, first], "sum")
    build.node("Identity", [build.pair("sum", 0.1)], "y")
    model = build.model({"x": [4, 16]}, {"y": [4, 16]})
    result, written, path = optimized(model, tmp_path, "algebra", "identity", "elementwise")
    assert ops(written) == {"QuantizeLinear": 2, "DequantizeLinear": 2, "Add": 1}
    assert [rejection.rule for rejection in result.rejections] == ["sum-of-same-is-double"]
    kernels = runtime_kernels(path, 1)
    assert kernels is not None
    assert kernels.quantized == 1


@pytest.mark.parametrize("saturates", [nightly(False), True])
def test_what_two_operators_read_is_brought_to_uint8(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, saturates: bool
) -> None:
    """Where one reads it onnxruntime does so itself; else its kernels are those of floats.

    These weights are too small for sums that saturate; of others, comparisons may not have met those.
    """
    monkeypatch.setattr(quantization, "sums_saturate", lambda: saturates)
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(residual_block(np.int8, most=63), source)
    costs = {"cost": "analytic:cpu", "backend": "onnxruntime", "end_to_end": False}
    options = Options.of(search="saturation", **costs)
    result = optimize(source, options, output=target)
    before, after = runtime_kernels(source, 1), runtime_kernels(target, 1)
    assert before is not None
    assert after is not None
    if saturates:
        assert {rejection.rule for rejection in result.rejections} == {"signed-as-unsigned"}
        assert "makes the result less exact" in result.rejections[0].why
        assert after.products == before.products
        return
    assert not result.verification.failure()
    assert result.cost_after_us < result.cost_before_us
    assert (before.quantized, after.quantized) == (1, 4)
    assert after.conversions == 2
    assert dtypes(onnx.load(target))[onnx.TensorProto.INT8] >= 2 * 16 * 16 * 9
