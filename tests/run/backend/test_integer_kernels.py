"""Kernels on integers are measured as onnxruntime's own operators; what they compute is what these do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat import load_model, load_profile
from relational_tensat.cost import Configuration, as_source, graph_cost_us
from relational_tensat.cost.cpu.probe import make_probe
from relational_tensat.cost.cpu.session import prepare
from relational_tensat.formats import to_onnx_model
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.rules.backends.onnxruntime.kernel_choice import kernels_of
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph, numpy_dtype
from relational_tensat.tensor.operators import get_operator
from tests.cost.fakes import configuration
from tests.formats.onnx_tools import constant, model, session, tensor
from tests.graphs import f32
from tests.quantized_models import Quantized, residual_block
from tests.run.backend.saved_kernels import (
    disagreement,
    predicted_kernels,
    saved_kernels,
)

load_backend("onnxruntime")
make = onnx.helper.make_node


def of(dtype: str, *shape: int) -> TensorType:
    return TensorType(dtype, shape)


_X = of("uint8", 1, 16, 7, 7)
_ONE = (f32(), of("uint8"))
_FILTERS = (of("int8", 8, 16, 3, 3), f32(8), of("int8", 8))
_BIAS = (of("int32", 8), f32(8), of("int32", 8))
_MATRIX = (of("int8", 16, 8), f32(8), of("int8", 8))
_ROWS = (of("int8", 8, 16), f32(8), of("int8", 8))
_WINDOW: dict[str, Any] = {"stride": (1, 1), "pad": "same"}
_A = of("uint8", 4, 16)
KERNELS = [
    (configuration("ort_quantized_conv", _X, _ONE, _FILTERS, _ONE, **_WINDOW), "QLinearConv"),
    (configuration("ort_quantized_conv", _X, _ONE, _FILTERS, _BIAS, _ONE, **_WINDOW), "QLinearConv"),
    (configuration("ort_quantized_product", _A, _ONE, _MATRIX, _ONE, axis=1), "QGemm"),
    (configuration("ort_quantized_product", _A, _ONE, _ROWS, _BIAS, _ONE, trans_b=True), "QGemm"),
    (configuration("ort_quantized_add", _X, _ONE, _X, _ONE, _ONE), "QLinearAdd"),
    (configuration("ort_quantized_mul", _X, _ONE, _X, _ONE, _ONE), "QLinearMul"),
    (configuration("ort_quantized_mean", _X, _ONE, _ONE), "QLinearGlobalAveragePool"),
    (configuration("ort_nhwc_max_pool", _X, kernel=(3, 3), **_WINDOW), "NhwcMaxPool"),
    (configuration("ort_integer_product", _A, _ONE, _MATRIX), "MatMulIntegerToFloat"),
    (configuration("ort_integer_product", _A, _ONE, _MATRIX, f32(8)), "MatMulIntegerToFloat"),
]  # fmt: skip


def test_a_kernel_as_it_runs_is_the_one_that_runs() -> None:
    """Estimates are asked for such kernels; images with channels last were brought there once more."""
    for whole, _ in KERNELS:
        for kernel in kernels_of(whole, tells_computed=True):
            assert kernels_of(kernel, tells_computed=True) == [kernel]


RNG = np.random.default_rng(5)


def drawn(kind: TensorType) -> Any:
    """Scales and other floats below a tenth, so that sums of products stay within 8 bits."""
    if kind.is_float:
        return RNG.uniform(0.01, 0.02, kind.shape).astype(np.float32)
    low, high = (-9, 10) if kind.dtype != "uint8" else (0, 19)
    return np.asarray(RNG.integers(low, high, kind.shape)).astype(numpy_dtype(kind.dtype))


def alone(kernel: Configuration, values: list[Any]) -> Graph:
    """Return a graph of one kernel; all but its first operand are constants."""
    kinds = [kind for kind in kernel.inputs if isinstance(kind, TensorType)]
    weights = {f"w{n}": Weight(kinds[n], values[n]) for n in range(1, len(kinds))}
    operands = ("x", *weights)
    return build_graph(
        "alone", {"x": kinds[0]}, weights, [Node(kernel.op, operands, ("y",), dict(kernel.attrs))], ["y"]
    )  # fmt: skip


@pytest.mark.parametrize(("kernel", "name"), KERNELS, ids=lambda each: str(each)[:40])
def test_a_kernel_on_integers_is_onnxruntimes_own_operator(
    kernel: Configuration, name: str
) -> None:
    """What is written to be measured computes what the kernel's parts do, but for steps of rounding."""
    (measured,) = kernels_of(kernel, tells_computed=True)
    probe = make_probe(measured, 1)
    prepare(probe.with_operator, probe.feeds, "off")()
    values = [drawn(kind) for kind in measured.inputs if isinstance(kind, TensorType)]
    if kernel.op in ("ort_quantized_conv", "ort_quantized_product") and len(values) > 8:
        values[7], values[8] = values[1] * values[4], np.zeros_like(values[8])  # of the sums
    written = to_onnx_model(alone(measured, values))
    assert [node.op_type for node in written.graph.node if node.domain] == [name]
    (computed,) = session(written).run(None, {"x": values[0]})
    expected = get_operator(kernel.op).evaluate_typed(values, measured.inputs, dict(measured.attrs))
    steps = 1e-5 if name == "MatMulIntegerToFloat" else 1
    assert np.max(np.abs(computed.astype(float) - expected)) <= steps


def dynamic_attention_inputs(path: Path) -> None:
    """One quantized value, multiplied with two matrices; then another, with one, and a bias."""
    nodes, constants = [make("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])], []
    for name, source in (("a", "q"), ("b", "q"), ("c", "r")):
        integers = RNG.integers(-127, 128, (16, 16))
        constants += [
            constant(f"w{name}", integers, np.int8),
            constant(f"t{name}", RNG.uniform(0.01, 0.02, 16), np.float32),
            constant(f"v{name}", np.zeros(16), np.int8),
        ]
        scale, zero = ("s", "z") if source == "q" else ("p", "o")
        if name == "c":
            nodes += [make("Add", ["a", "b"], ["sum"])]
            nodes += [make("DynamicQuantizeLinear", ["sum"], ["r", "p", "o"])]
        nodes += [
            make("Mul", [scale, f"t{name}"], [f"{name}_scales"]),
            make("MatMulInteger", [source, f"w{name}", zero, f"v{name}"], [f"{name}_int"]),
            make("Cast", [f"{name}_int"], [f"{name}_cast"], to=1),
            make("Mul", [f"{name}_cast", f"{name}_scales"], [name]),
        ]
    nodes += [make("Add", ["c", "bias"], ["y"])]
    constants += [constant("bias", RNG.uniform(-1, 1, 16), np.float32)]
    shape = [1, 4, 16]
    onnx.save(model(nodes, [tensor("x", shape)], [tensor("y", shape)], constants), path)


def sum_and_mean(path: Path) -> None:
    """A Sum before a layer norm, and a ReduceMean of an image in blocks: spelled so, they stay apart."""
    nodes = [
        make("Conv", ["x", "w"], ["c"], kernel_shape=[1, 1]),
        make("Relu", ["c"], ["r"]),
        make("ReduceMean", ["r"], ["m"], axes=[2, 3], keepdims=1),
        make("Conv", ["m", "w"], ["d"], kernel_shape=[1, 1]),
        make("Reshape", ["d", "shape"], ["e"]),
        make("Sum", ["e", "e"], ["f"]),
        make("LayerNormalization", ["f", "scale", "bias"], ["y"], axis=-1),
    ]
    constants = [
        constant("w", RNG.uniform(-1, 1, (32, 32, 1, 1)), np.float32),
        constant("shape", [1, 1, 32], np.int64),
        constant("scale", np.ones(32), np.float32),
        constant("bias", np.ones(32), np.float32),
    ]
    made = model(nodes, [tensor("x", [1, 32, 8, 8])], [tensor("y", [1, 1, 32])], constants)
    onnx.save(made, path)


def few_channels(path: Path) -> None:
    """Convolutions on integers: the first, of three channels, is made though it is quicker on floats."""
    build = Quantized()
    value = build.pair("x")
    for name, channels in (("a", 3), ("b", 16), ("c", 16)):
        conv = build.node("Conv", [value, build.weight(f"w{name}", 16, channels, 3, 3)], name)
        value = build.pair(conv)
    onnx.save(build.model({"x": [1, 3, 32, 32]}, {value: [1, 16, 26, 26]}), path)


def residual(dtype: Any) -> Callable[[Path], None]:
    """Of int8 only what one operator reads is brought to uint8.

    The others are dequantized, for each of them again; channels come last in kernels on integers.
    """
    return lambda path: onnx.save(residual_block(dtype), path)


@pytest.mark.parametrize(
    "save",
    [dynamic_attention_inputs, sum_and_mean, few_channels, residual(np.uint8), residual(np.int8)],
)
def test_the_kernels_of_a_file_are_those_that_onnxruntime_saves(save: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    save(path)
    backend = load_backend("onnxruntime")
    costs = BackendCosts(
        as_source(load_profile("cpu")), backend, backend.rules(has_fixed_shapes=True)
    )
    predicted = predicted_kernels(costs.as_run(load_model(path)))
    assert disagreement(predicted, saved_kernels(path)) == {}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_what_is_written_of_kernels_on_integers_costs_what_they_do(
    dtype: Any, tmp_path: Path
) -> None:
    """Where channels lie is not written: onnxruntime brings them there itself."""
    path = tmp_path / "model.onnx"
    onnx.save(residual_block(dtype), path)
    backend = load_backend("onnxruntime")
    costs = BackendCosts(
        as_source(load_profile("cpu")), backend, backend.rules(has_fixed_shapes=True)
    )
    graph = load_model(path)
    written = expand_to_onnx(costs.as_run(graph), graph)
    assert "transpose" not in written.count_ops()
    assert graph_cost_us(written, costs) == pytest.approx(graph_cost_us(graph, costs))


def test_convolutions_of_single_channels_are_priced_without_dot_products() -> None:
    profile = load_profile("cpu")

    def price(*filters: int) -> float:
        weights = (of("int8", *filters), f32(filters[0]), of("int8", filters[0]))
        (kernel,) = kernels_of(
            configuration(
                "ort_quantized_conv", of("uint8", 1, 64, 9, 9), _ONE, weights, _ONE, **_WINDOW
            ),
            tells_computed=True,
        )
        return profile.cost_us(kernel.op, kernel.inputs, kernel.output, dict(kernel.attrs))

    assert price(64, 1, 8, 8) > 2 * price(16, 64, 2, 2) > 0  # the same products


def test_zero_points_of_weights_are_zero_where_they_are_measured() -> None:
    kernel, _ = KERNELS[0]
    (measured,) = kernels_of(kernel, tells_computed=True)
    weights = make_probe(measured, 1).with_operator.weights
    assert {name for name, weight in weights.items() if not np.any(weight.data)} >= {
        "w2_0_0",
        "w5_0_0",
    }
    assert np.any(weights["w3_0_0"].data)
