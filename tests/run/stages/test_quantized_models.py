"""Quantized operators that are carried as they are: through a run that rewrites what is around them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.verify.quantization import Kernels, runtime_kernels
from relational_tensat.verify.sessions import Session, open_session
from tests.formats.onnx_tools import assert_same_results, constant, model, tensor
from tests.quantized_models import Quantized

INT4 = onnx.TensorProto.INT4
MICROSOFT = "com.microsoft"
RNG = np.random.default_rng(0)
X = tensor("x", [8, 32])
Y = tensor("y", [8, 32])


def node(op: str, inputs: str, outputs: str, **attrs: Any) -> onnx.NodeProto:
    return onnx.helper.make_node(op, inputs.split(), outputs.split(), **attrs)


#: What makes "r" of "x", with something to save.
TWICE = [node("Relu", "x", "x1"), node("Relu", "x1", "r")]


def integers(*shape: int, low: int = -127, high: int = 128) -> Any:
    return RNG.integers(low, high, shape)


def dynamic() -> onnx.ModelProto:
    """As quantize_dynamic writes a product."""
    nodes = [
        *TWICE,
        node("DynamicQuantizeLinear", "r", "q s z"),
        node("MatMulInteger", "q w z", "m"),
        node("Cast", "m", "c", to=1),
        node("Mul", "s ws", "sw"),
        node("Mul", "c sw", "y"),
    ]
    constants = [constant("w", integers(32, 32), np.int8), constant("ws", 0.01, np.float32)]
    return model(nodes, [X], [Y], constants)


def linear_operators() -> onnx.ModelProto:
    """As quantize_static writes operators on integers."""
    nodes = [
        *TWICE,
        node("QuantizeLinear", "r s z", "q"),
        node("QLinearMatMul", "q s z w s wz s z", "m"),
        node("QLinearAdd", "m s z q s z s z", "a", domain=MICROSOFT),
        node("DequantizeLinear", "a s z", "y"),
    ]
    constants = [
        constant("w", integers(32, 32), np.int8),
        constant("s", 0.05, np.float32),
        constant("z", 128, np.uint8),
        constant("wz", 0, np.int8),
    ]
    return model(nodes, [X], [Y], constants, domains={MICROSOFT: 1})


def convolution() -> onnx.ModelProto:
    nodes = [
        node("Relu", "x", "x1"),
        node("Relu", "x1", "r"),
        node("DynamicQuantizeLinear", "r", "q s z"),
        node("ConvInteger", "q w z", "c"),
        node("Cast", "c", "y", to=1),
    ]
    constants = [constant("w", integers(4, 2, 3, 3, low=0, high=255), np.uint8)]
    return model(nodes, [tensor("x", [1, 2, 8, 8])], [tensor("y", [1, 4, 6, 6])], constants)


def packed_product() -> onnx.ModelProto:
    attrs = {"K": 32, "N": 32, "bits": 4, "block_size": 32}
    nodes = [*TWICE, node("MatMulNBits", "r w s", "y", domain=MICROSOFT, **attrs)]
    constants = [
        constant("w", integers(32, 1, 16, low=0, high=256), np.uint8),
        constant("s", RNG.uniform(0.01, 0.02, 32), np.float32),
    ]
    return model(nodes, [X], [Y], constants, domains={MICROSOFT: 1})


def blocks_of_4_bits() -> onnx.ModelProto:
    nodes = [
        *TWICE,
        node("DequantizeLinear", "w s", "dw", axis=0, block_size=16),
        node("MatMul", "r dw", "y"),
    ]
    weights = onnx.helper.make_tensor("w", INT4, [32, 32], integers(32, 32, low=-8, high=8).ravel())
    constants = [weights, constant("s", RNG.uniform(0.01, 0.02, (2, 32)), np.float32)]
    made = model(nodes, [X], [Y], constants, 21)
    made.ir_version = 10
    return made


CASES: list[tuple[Callable[[], onnx.ModelProto], set[str]]] = [
    (dynamic, {"DynamicQuantizeLinear", "MatMulInteger"}),
    (linear_operators, {"QLinearMatMul", "QLinearAdd"}),
    (convolution, {"DynamicQuantizeLinear", "ConvInteger"}),
    (packed_product, {"MatMulNBits"}),
    (blocks_of_4_bits, {"DequantizeLinear"}),
]


@pytest.mark.parametrize(("made", "stay"), CASES, ids=[made.__name__ for made, _ in CASES])
def test_quantized_operators_go_through(
    tmp_path: Path, made: Callable[[], onnx.ModelProto], stay: set[str]
) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    original = made()
    onnx.save(original, source)
    optimize(source, Options.of(cost="t4"), output=target)
    written = onnx.load(target)
    assert stay <= {each.op_type for each in written.graph.node}
    assert sum(each.op_type == "Relu" for each in written.graph.node) == 1
    assert target.stat().st_size <= source.stat().st_size
    assert_same_results(original, written)
    before, after = runtime_kernels(source, 1), runtime_kernels(target, 1)
    assert isinstance(before, Kernels)
    assert isinstance(after, Kernels)
    assert after.quantized == before.quantized


def between_integers(product: str, middle: str, layers: int = 1) -> onnx.ModelProto:
    """Quantized values through products with weights of floats, and an operator that goes into these."""
    build, numbers = Quantized(), np.random.default_rng(1)
    shape, row = ([4, 16, 3, 1], (16, 1, 1)) if product == "Conv" else ([4, 16], (16,))
    value = "x"
    for layer in range(layers):
        value = build.pair(value, 0.03)
        weight = numbers.normal(size=(16, 16, *(1,) * (len(shape) - 2))) / 4
        operands = [build.constant(f"w{layer}", weight, np.float32)]
        if product == "Gemm":
            operands.append(build.constant(f"b{layer}", numbers.normal(size=16) / 4, np.float32))
        value = build.node(product, [value, *operands], f"p{layer}")
        names = [f"s{layer}"]
        if middle == "BatchNormalization":
            names += [f"bias{layer}", f"mean{layer}", f"var{layer}"]
        for name in names:
            size = (16,) if len(names) > 1 else row
            build.constant(name, numbers.uniform(0.5, 2, size), np.float32)
        value = build.node(middle, [value, *names], f"m{layer}")
    value = build.pair(value, 0.03)
    return build.model({"x": shape}, {value: shape}, 18)


@pytest.mark.parametrize(
    ("product", "middle", "layers"),
    [
        ("Gemm", "Mul", 1),
        ("Gemm", "BatchNormalization", 1),
        ("MatMul", "Mul", 1),
        ("MatMul", "Add", 1),
        ("Conv", "Mul", 1),
        ("Gemm", "Mul", 3),
    ],
)
def test_weights_that_onnxruntime_does_not_quantize_stay_so(
    tmp_path: Path, product: str, middle: str, layers: int
) -> None:
    """Without the operator between product and quantization, onnxruntime would quantize the weights."""
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    original = between_integers(product, middle, layers)
    onnx.save(original, source)
    options = Options.of(backend="onnxruntime", cost="analytic:cpu", budget_s=0.0)
    optimize(source, options, output=target)
    before, after = runtime_kernels(source, 1), runtime_kernels(target, 1)
    assert before is not None and after is not None
    assert not before.gain(after, saturates=True)
    dims = [each.dim_value for each in original.graph.input[0].type.tensor_type.shape.dim]
    numbers = np.random.default_rng(2)
    sessions = [open_session(path, 1, Session.AS_BY_DEFAULT) for path in (source, target)]
    for spread in (0.1, 1.0, 3.0):
        x = numbers.normal(0.0, spread, dims)
        expected, found = (each.run(None, {"x": x.astype(np.float32)})[0] for each in sessions)
        steps = np.abs(expected - found).max() / 0.03
        assert steps < (0.5 if layers == 1 else 1.5)


def test_outputs_alone_show_weights_that_were_quantized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where kernels were not compared: what is some steps off is not rounding."""

    def no_gain(*_: object, **__: object) -> str:
        return ""

    monkeypatch.setattr(Kernels, "gain", no_gain)
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(between_integers("Gemm", "BatchNormalization"), source)
    result = optimize(source, Options.of(cost="t4", verify_runs=1), output=target)
    assert "onnxruntime with its optimizations" in result.rejections[0].why
    assert target.read_bytes() == source.read_bytes()
