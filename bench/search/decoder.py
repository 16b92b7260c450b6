"""A decoder of any size, made on the spot: gated MLPs, a causal mask, norms by root mean squares.

The nodes are those that exporters write (weights as initializers, heads by Reshape and Transpose). Weights
are drawn from a seeded generator.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_OPSET = 20


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a decoder.

    Attributes:
        layers, width, heads, mlp_width: as usual; ``width`` is a multiple of ``heads``.
        positions: tokens of the one sequence in a batch.
        vocabulary: rows of the embedding.
    """

    layers: int
    width: int
    heads: int
    mlp_width: int
    positions: int
    vocabulary: int


def decoder(shape: Shape) -> onnx.ModelProto:
    """Return a decoder in float32; a layer has RMSNorm, SiLU(x·G) ⊙ (x·U), and no biases."""
    return _Writer(shape).model()


class _Writer:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._initializers: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        shape = self._shape
        table = self._weight("embedding", (shape.vocabulary, shape.width))
        x = self._emit("Gather", [table, "tokens"], "embedded")
        x = self._emit(
            "Add", [x, self._weight("positions", (1, shape.positions, shape.width))], "x0"
        )
        for layer in range(shape.layers):
            x = self._layer(x, f"layer{layer}")
        size = [1, shape.positions, shape.width]
        graph = helper.make_graph(
            [*self._nodes, helper.make_node("Identity", [x], ["hidden"])],
            "decoder",
            [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, shape.positions])],
            [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, size)],
            self._initializers,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9
        )

    def _layer(self, x: str, name: str) -> str:
        normed = self._rms_norm(x, f"{name}/norm1")
        attended = self._attention(normed, name)
        x = self._emit("Add", [x, attended], f"{name}/residual1")
        normed = self._rms_norm(x, f"{name}/norm2")
        width, mlp_width = self._shape.width, self._shape.mlp_width
        gate = self._linear(normed, f"{name}/gate", width, mlp_width)
        sigmoid = self._emit("Sigmoid", [gate], f"{name}/sigmoid")
        silu = self._emit("Mul", [gate, sigmoid], f"{name}/silu")
        up = self._linear(normed, f"{name}/up", width, mlp_width)
        product = self._emit("Mul", [silu, up], f"{name}/gated")
        return self._emit(
            "Add", [x, self._linear(product, f"{name}/down", mlp_width, width)], f"{name}/residual2"
        )

    def _attention(self, x: str, name: str) -> str:
        shape = self._shape
        query, key, value = (
            self._heads(
                self._linear(x, f"{name}/{part}", shape.width, shape.width),
                f"{name}/{part}",
                [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3],
            )
            for part in ("query", "key", "value")
        )
        scores = self._emit("MatMul", [query, key], f"{name}/products")
        root = self._constant(f"{name}/root", np.float32(np.sqrt(shape.width // shape.heads)))
        scores = self._emit("Div", [scores, root], f"{name}/scores")
        mask = np.triu(np.full((shape.positions, shape.positions), -1e9, np.float32), 1)
        scores = self._emit(
            "Add", [scores, self._constant(f"{name}/mask", mask[None, None])], f"{name}/masked"
        )
        weights = self._emit("Softmax", [scores], f"{name}/attention", axis=-1)
        mixed = self._emit("MatMul", [weights, value], f"{name}/mixed")
        joined = self._emit("Transpose", [mixed], f"{name}/joined", perm=[0, 2, 1, 3])
        target = self._constant(
            f"{name}/join", np.array([1, shape.positions, shape.width], np.int64)
        )
        flat = self._emit("Reshape", [joined, target], f"{name}/flat")
        return self._linear(flat, f"{name}/output", shape.width, shape.width)

    def _heads(self, x: str, name: str, perm: list[int]) -> str:
        shape = self._shape
        sizes = [1, shape.positions, shape.heads, shape.width // shape.heads]
        target = self._constant(f"{name}/split", np.array(sizes, np.int64))
        split = self._emit("Reshape", [x, target], f"{name}/parts")
        return self._emit("Transpose", [split], f"{name}/heads", perm=perm)

    def _linear(self, x: str, name: str, n_in: int, n_out: int) -> str:
        weight = self._weight(f"{name}.weight", (n_in, n_out))
        return self._emit("MatMul", [x, weight], f"{name}/product")

    def _rms_norm(self, x: str, name: str) -> str:
        square = self._emit("Mul", [x, x], f"{name}/square")
        axes = self._constant(f"{name}/axes", np.array([-1], np.int64))
        mean = self._emit("ReduceMean", [square, axes], f"{name}/mean", keepdims=1)
        sum_ = self._emit(
            "Add", [mean, self._constant(f"{name}/epsilon", np.float32(1e-6))], f"{name}/sum"
        )
        root = self._emit("Sqrt", [sum_], f"{name}/root")
        normed = self._emit("Div", [x, root], f"{name}/normed")
        return self._emit(
            "Mul", [normed, self._weight(f"{name}.scale", (self._shape.width,))], f"{name}/scaled"
        )

    def _emit(self, op_type: str, inputs: list[str], output: str, **attrs: object) -> str:
        self._nodes.append(helper.make_node(op_type, inputs, [output], output, **attrs))
        return output

    def _weight(self, name: str, shape: tuple[int, ...]) -> str:
        """Add uniform numbers around 0, as large as to keep the scale of what they multiply."""
        limit = np.float32((3 / shape[0]) ** 0.5 if len(shape) == 2 else 1)
        value = self._random.random(shape, np.float32)
        value -= np.float32(0.5)
        value *= 2 * limit
        return self._constant(name, value)

    def _constant(self, name: str, value: np.ndarray | np.generic) -> str:
        self._initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name
