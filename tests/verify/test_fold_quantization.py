"""Quantized weights stay as small as they are stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.formats import load_model
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.uses import count_inference_ops, weight_only_values
from relational_tensat.verify.fold import assume_folded, fold_weights
from tests.formats.onnx_tools import constant, model, tensor
from tests.graphs import f32

node = onnx.helper.make_node


def quantized_product() -> Graph:
    weights = {
        "w": Weight(TensorType("int8", (4, 4)), np.arange(16, dtype=np.int8).reshape(4, 4)),
        "s": Weight(f32(4), np.full(4, 0.5, np.float32)),
        "t": Weight(f32(4), np.full(4, 0.25, np.float32)),
    }
    nodes = [
        Node("mul", ("s", "t"), ("scale",)),
        Node("transpose", ("w",), ("turned",), {"perm": (1, 0)}),
        Node("dequantize", ("turned", "scale"), ("b",), {"axis": 1}),
        Node("neg", ("b",), ("c",)),
        Node("matmul", ("x", "c"), ("y",)),
    ]
    return build_graph("q", {"x": f32(2, 4)}, weights, nodes, ["y"])


def test_weights_are_folded_up_to_where_they_are_dequantized() -> None:
    graph = quantized_product()
    for folded in (fold_weights(graph), assume_folded(graph)):
        assert [node.op for node in folded.nodes] == ["dequantize", "neg", "matmul"]
        assert folded.weights["turned"].type == TensorType("int8", (4, 4))


def test_dequantizing_constants_is_free_and_what_follows_is_not() -> None:
    graph = quantized_product()
    assert weight_only_values(graph) == {"w", "s", "t", "scale", "turned"}
    assert count_inference_ops(graph) == {"matmul": 1, "neg": 1}


def test_small_quantized_weights_are_not_folded_when_a_model_is_read(tmp_path: Path) -> None:
    """A bias of four int32 is part of the pattern that onnxruntime makes a QLinearConv of."""
    nodes = [
        node("DequantizeLinear", ["b", "s"], ["bias"]),
        node("Add", ["x", "bias"], ["y"]),
    ]
    constants = [constant("b", [1, 2, 3, 4], np.int32), constant("s", 0.5, np.float32)]
    onnx.save(
        model(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 4])], constants), tmp_path / "m.onnx"
    )
    graph = load_model(tmp_path / "m.onnx")
    assert [node.op for node in graph.nodes] == ["dequantize", "add"]


@pytest.mark.parametrize("block", [0, 2])
def test_the_file_of_a_quantized_model_does_not_grow(tmp_path: Path, block: int) -> None:
    """Two relus are one: the model is rewritten, its weights are not."""
    weights = constant("w", np.arange(64 * 64).reshape(64, 64) % 100, np.int8)
    scale = constant("s", np.full((64 // block, 64) if block else (64,), 0.01), np.float32)
    more = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Relu", ["r"], ["rr"]),
        node("DequantizeLinear", ["w", "s"], ["dw"], **more),
        node("MatMul", ["rr", "dw"], ["y"]),
    ]
    source, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(
        model(nodes, [tensor("x", [8, 64])], [tensor("y", [8, 64])], [weights, scale], 21), source
    )
    optimize(source, Options.of(cost="t4"), output=target)
    written = onnx.load(target)
    assert sorted(node.op_type for node in written.graph.node) == [
        "DequantizeLinear",
        "MatMul",
        "Relu",
    ]
    assert target.stat().st_size <= source.stat().st_size
