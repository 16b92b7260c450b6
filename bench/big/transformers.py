"""Transformers of any size, made on the spot: an encoder like BERT-base, a decoder with gated MLPs.

The nodes are those that exporters write (weights as initializers, heads by Reshape and Transpose). Weights
are drawn from a seeded generator and written one by one, so that no model is ever in memory whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import onnx
from onnx import TensorProto, helper

_OPSET = 20
#: Tensors smaller than this stay in the model; ONNX's own default for external data.
_INLINE_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a transformer.

    Attributes:
        layers, width, heads, mlp_width: as usual; ``width`` is a multiple of ``heads``.
        positions: tokens of the one sequence in a batch.
        vocabulary: rows of the embedding.
        gated: a decoder's layer: RMSNorm, a causal mask, SiLU(x·G) ⊙ (x·U), no biases; else an
            encoder's: LayerNorm after the residual, GELU, biases.
    """

    layers: int
    width: int
    heads: int
    mlp_width: int
    positions: int
    vocabulary: int
    gated: bool


#: BERT-base (Devlin et al. 2019), 0.41 GiB in float32; a decoder of 24 layers, 4.0 GiB.
SHAPES = {
    "encoder": Shape(12, 768, 12, 3072, 128, 30522, gated=False),
    "decoder": Shape(24, 2048, 16, 4096, 64, 32000, gated=True),
}


def write_transformer(shape: Shape, path: Path, *, seed: int = 0) -> Path:
    """Write a transformer; weights of a decoder go to ``NAME.onnx.data``.

    Returns:
        ``path``.
    """
    external = path.with_name(path.name + ".data") if shape.gated else None
    if external is None:
        model = _Writer(shape, seed, None, "").model()
    else:
        with external.open("wb") as data:
            model = _Writer(shape, seed, data, external.name).model()
    path.write_bytes(model.SerializeToString())
    return path


class _Writer:
    def __init__(self, shape: Shape, seed: int, data: BinaryIO | None, location: str) -> None:
        self._shape = shape
        self._random = np.random.default_rng(seed)
        self._data, self._location = data, location
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
            x = (
                self._decoder(x, f"layer{layer}")
                if shape.gated
                else self._encoder(x, f"layer{layer}")
            )
        size = [1, shape.positions, shape.width]
        graph = helper.make_graph(
            [*self._nodes, helper.make_node("Identity", [x], ["hidden"])],
            "decoder" if shape.gated else "encoder",
            [helper.make_tensor_value_info("tokens", TensorProto.INT64, [1, shape.positions])],
            [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, size)],
            self._initializers,
        )
        return helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=9
        )

    def _encoder(self, x: str, name: str) -> str:
        attended = self._attention(x, name, bias=True)
        x = self._layer_norm(self._emit("Add", [x, attended], f"{name}/residual1"), f"{name}/norm1")
        up = self._linear(x, f"{name}/up", self._shape.width, self._shape.mlp_width, bias=True)
        active = self._emit("Gelu", [up], f"{name}/gelu")
        down = self._linear(
            active, f"{name}/down", self._shape.mlp_width, self._shape.width, bias=True
        )
        return self._layer_norm(self._emit("Add", [x, down], f"{name}/residual2"), f"{name}/norm2")

    def _decoder(self, x: str, name: str) -> str:
        normed = self._rms_norm(x, f"{name}/norm1")
        attended = self._attention(normed, name, bias=False)
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

    def _attention(self, x: str, name: str, *, bias: bool) -> str:
        shape = self._shape
        query, key, value = (
            self._heads(
                self._linear(x, f"{name}/{part}", shape.width, shape.width, bias=bias),
                f"{name}/{part}",
                [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3],
            )
            for part in ("query", "key", "value")
        )
        scores = self._emit("MatMul", [query, key], f"{name}/products")
        root = self._constant(f"{name}/root", np.float32(np.sqrt(shape.width // shape.heads)))
        scores = self._emit("Div", [scores, root], f"{name}/scores")
        if shape.gated:
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
        return self._linear(flat, f"{name}/output", shape.width, shape.width, bias=bias)

    def _heads(self, x: str, name: str, perm: list[int]) -> str:
        shape = self._shape
        sizes = [1, shape.positions, shape.heads, shape.width // shape.heads]
        target = self._constant(f"{name}/split", np.array(sizes, np.int64))
        split = self._emit("Reshape", [x, target], f"{name}/parts")
        return self._emit("Transpose", [split], f"{name}/heads", perm=perm)

    def _linear(self, x: str, name: str, n_in: int, n_out: int, *, bias: bool = False) -> str:
        product = self._emit(
            "MatMul", [x, self._weight(f"{name}.weight", (n_in, n_out))], f"{name}/product"
        )
        if not bias:
            return product
        return self._emit("Add", [self._weight(f"{name}.bias", (n_out,)), product], f"{name}/sum")

    def _layer_norm(self, x: str, name: str) -> str:
        scale, bias = (
            self._weight(f"{name}.{part}", (self._shape.width,)) for part in ("scale", "bias")
        )
        return self._emit("LayerNormalization", [x, scale, bias], name, axis=-1, epsilon=1e-12)

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
        array = np.asarray(value)
        tensor = TensorProto(name=name, dims=array.shape)
        tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        if self._data is None or array.nbytes < _INLINE_BYTES:
            tensor.raw_data = array.tobytes()
        else:
            tensor.data_location = TensorProto.EXTERNAL
            place = {
                "location": self._location,
                "offset": self._data.tell(),
                "length": array.nbytes,
            }
            for key, entry in place.items():
                tensor.external_data.add(key=key, value=str(entry))
            self._data.write(array.tobytes())
        self._initializers.append(tensor)
        return name
