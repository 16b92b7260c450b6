"""Small quantized models, as exporters write them: QuantizeLinear and DequantizeLinear around operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from tests.formats.onnx_tools import constant, model, tensor

make = onnx.helper.make_node


class Quantized:
    """Collects the nodes and constants of a model.

    Weights are int8, with the zero point 0, and all else is uint8, with 128: what onnxruntime has
    kernels for on every processor.
    """

    def __init__(self, seed: int = 0, most: int = 127) -> None:
        """Begin with nothing; weights are at most so large. Up to 63 no sum of two products saturates."""
        self.most = most
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(seed)

    def node(self, op: str, inputs: list[str], output: str, **attrs: Any) -> str:
        self.nodes.append(make(op, inputs, [output], name=f"n_{output}", **attrs))
        return output

    def constant(self, name: str, value: Any, dtype: Any) -> str:
        self.constants.append(constant(name, value, dtype))
        return name

    def parameters(self, name: str, scale: Any, zero: int = 0, dtype: Any = np.int8) -> list[str]:
        """Return the names of a scale and a zero point."""
        return [
            self.constant(f"{name}_scale", scale, np.float32),
            self.constant(f"{name}_zero", np.full(np.shape(scale), zero), dtype),
        ]

    def pair(self, value: str, scale: float = 0.05, dtype: Any = np.uint8) -> str:
        """Quantize a value and dequantize it again."""
        parameters = self.parameters(value, scale, 128 if dtype is np.uint8 else 0, dtype)
        self.node("QuantizeLinear", [value, *parameters], f"{value}_q")
        return self.node("DequantizeLinear", [f"{value}_q", *parameters], f"{value}_dq")

    def weight(self, name: str, *shape: int, axis: int | None = None) -> str:
        """Return a dequantized weight, with a scale for each slice along an axis if one is given."""
        values = self._rng.integers(-self.most, self.most + 1, shape)
        scale: Any = 0.01
        if axis is not None:
            scale = self._rng.uniform(0.005, 0.02, shape[axis])
        stored = self.constant(f"{name}_q", values, np.int8)
        more = {} if axis is None else {"axis": axis}
        return self.node("DequantizeLinear", [stored, *self.parameters(name, scale)], name, **more)

    def model(
        self, inputs: dict[str, list[int]], outputs: dict[str, list[int]], opset: int = 17
    ) -> onnx.ModelProto:
        return model(
            self.nodes,
            [tensor(name, shape) for name, shape in inputs.items()],
            [tensor(name, shape) for name, shape in outputs.items()],
            self.constants,
            opset,
        )


def residual_block(dtype: Any, most: int = 127) -> onnx.ModelProto:
    """Return two convolutions, a sum with what lies between them, and the mean of each channel."""
    build = Quantized(most=most)
    value = build.pair("x", dtype=dtype)
    for name in "ab":
        between, weight = value, build.weight(f"w{name}", 16, 16, 3, 3)
        bias = build.constant(f"b{name}_q", np.arange(16), np.int32)
        scales = build.parameters(f"b{name}", 0.05 * 0.01, 0, np.int32)
        bias = build.node("DequantizeLinear", [bias, *scales], f"b{name}")
        conv = build.node("Conv", [value, weight, bias], f"c{name}", pads=[1, 1, 1, 1])
        value = build.pair(conv, dtype=dtype)
    value = build.pair(build.node("Add", [value, between], "s"), dtype=dtype)
    build.pair(build.node("GlobalAveragePool", [value], "g"), dtype=dtype)
    return build.model({"x": [1, 16, 8, 8]}, {"g_dq": [1, 16, 1, 1]})


def two_products(second_scale: float, axis: int | None = None) -> onnx.ModelProto:
    """Two products of one operand, each result quantized, with equal scales or not."""
    build = Quantized()
    x = build.pair("x")
    for name, scale in (("a", 0.3), ("b", second_scale)):
        build.node("MatMul", [x, build.weight(f"w_{name}", 64, 64, axis=axis)], name)
        build.node("Identity", [build.pair(name, scale)], f"y_{name}")
    return build.model({"x": [16, 64]}, {"y_a": [16, 64], "y_b": [16, 64]})


def mean_before_reshape() -> onnx.ModelProto:
    """Return a mean over an image of uint8, reshaped to what it is without the axes that it keeps."""
    build = Quantized()
    build.node("GlobalAveragePool", [build.pair("x")], "g")
    shape = build.constant("shape", [1, 4], np.int64)
    value = build.node("Reshape", [build.pair("g", 0.02), shape], "r")
    parameters = ["g_scale", "g_zero"]
    value = build.node("QuantizeLinear", [value, *parameters], "rq")
    build.node("DequantizeLinear", [value, *parameters], "y")
    return build.model({"x": [1, 4, 8, 8]}, {"y": [1, 4]})
