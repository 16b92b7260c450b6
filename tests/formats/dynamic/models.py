"""Models with dynamic dimensions: the smallest, and a block of a transformer as exporters write it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.formats.onnx_tools import INT64, constant, model, tensor

WIDTH, HEADS = 8, 2
_DRAWN = np.random.default_rng(0)


def saved(proto: onnx.ModelProto, folder: Path, name: str = "m.onnx") -> Path:
    onnx.checker.check_model(proto)
    onnx.save(proto, folder / name)
    return folder / name


def weight(name: str, *shape: int) -> onnx.TensorProto:
    return constant(name, _DRAWN.standard_normal(shape), np.float32)


def mlp() -> onnx.ModelProto:
    """Two layers, the bias of each added apart."""
    node = helper.make_node
    return model(
        [
            node("MatMul", ["x", "w"], ["p"]),
            node("Add", ["p", "b"], ["q"]),
            node("Relu", ["q"], ["r"]),
            node("Relu", ["r"], ["s"]),
            node("MatMul", ["s", "v"], ["y"]),
        ],
        [tensor("x", ["batch", 4])],
        [tensor("y", ["batch", 5])],
        [weight("w", 4, 6), weight("b", 6), weight("v", 6, 5)],
    )


def reshaped(shape: list[str | int]) -> onnx.ModelProto:
    """``relu(relu(x))`` of a [batch, seq, 8], then a Reshape to what Concat of computed sizes says.

    Args:
        shape: "batch" and "seq" are taken from Shape(x).
    """
    node = helper.make_node
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Shape", ["x"], ["sizes"]),
        node("Gather", ["sizes", "zero"], ["batch"]),
        node("Gather", ["sizes", "one"], ["seq"]),
    ]
    constants = [constant("zero", [0], np.int64), constant("one", [1], np.int64)]
    parts = []
    for index, size in enumerate(shape):
        if isinstance(size, int):
            constants.append(constant(f"size{index}", [size], np.int64))
        parts.append(size if isinstance(size, str) else f"size{index}")
    nodes += [node("Concat", parts, ["target"], axis=0), node("Reshape", ["b", "target"], ["y"])]
    outputs = [tensor("y", [None] * len(shape))]
    return model(nodes, [tensor("x", ["batch", "seq", WIDTH])], outputs, constants)


def attention() -> onnx.ModelProto:
    """An attention block of token ids [batch, seq] and their mask, with learned positions.

    Shapes are computed by Shape, Gather and Concat, positions by Range, as exporters write them.
    """
    node = helper.make_node
    nodes = [
        node("Shape", ["ids"], ["ids_shape"]),
        node("Gather", ["ids_shape", "i0"], ["batch"], axis=0),
        node("Gather", ["ids_shape", "i1"], ["seq"], axis=0),
        node("Range", ["i0", "seq", "i1"], ["positions"]),
        node("Gather", ["tokens", "ids"], ["token"]),
        node("Gather", ["places", "positions"], ["place"]),
        node("Add", ["token", "place"], ["x"]),
        node("Unsqueeze", ["batch", "axis0"], ["batch1"]),
        node("Unsqueeze", ["seq", "axis0"], ["seq1"]),
        node("Concat", ["batch1", "seq1", "heads", "depth"], ["apart"], axis=0),
        node("Concat", ["batch1", "seq1", "width"], ["together"], axis=0),
        node("Unsqueeze", ["mask", "axes12"], ["mask4"]),
        node("Cast", ["mask4"], ["mask_float"], to=onnx.TensorProto.FLOAT),
        node("Sub", ["number1", "mask_float"], ["hidden"]),
        node("Mul", ["hidden", "low"], ["penalty"]),
    ]
    for name in "qkv":
        nodes += [
            node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            node("Add", [f"{name}0", f"b{name}"], [f"{name}1"]),
            node("Reshape", [f"{name}1", "apart"], [f"{name}2"]),
        ]
    nodes += [
        node("Transpose", ["q2"], ["q3"], perm=[0, 2, 1, 3]),
        node("Transpose", ["k2"], ["k3"], perm=[0, 2, 3, 1]),
        node("Transpose", ["v2"], ["v3"], perm=[0, 2, 1, 3]),
        node("MatMul", ["q3", "k3"], ["scores"]),
        node("Div", ["scores", "root"], ["scaled"]),
        node("Add", ["scaled", "penalty"], ["masked"]),
        node("Softmax", ["masked"], ["shares"], axis=-1),
        node("MatMul", ["shares", "v3"], ["mixed"]),
        node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
        node("Reshape", ["back", "together"], ["joined"]),
        node("MatMul", ["joined", "wo"], ["out"]),
        node("Add", ["out", "x"], ["y"]),
    ]
    integers = {
        "i0": 0, "i1": 1, "axis0": [0], "axes12": [1, 2], "heads": [HEADS],
        "depth": [WIDTH // HEADS], "width": [WIDTH],
    }  # fmt: skip
    numbers = {"number1": 1.0, "low": -100.0, "root": 2.0}
    return model(
        nodes,
        [tensor("ids", ["batch", "seq"], INT64), tensor("mask", ["batch", "seq"], INT64)],
        [tensor("y", ["batch", "seq", WIDTH])],
        [
            *(constant(name, value, np.int64) for name, value in integers.items()),
            *(constant(name, value, np.float32) for name, value in numbers.items()),
            *(weight(f"w{name}", WIDTH, WIDTH) for name in "qkvo"),
            *(weight(f"b{name}", WIDTH) for name in "qkv"),
            weight("tokens", 20, WIDTH),
            weight("places", 256, WIDTH),
        ],
    )
