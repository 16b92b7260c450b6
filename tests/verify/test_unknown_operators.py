"""Opaque operators: in onnxruntime, by ONNX's reference, else a stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.formats import from_onnx_model
from relational_tensat.tensor import Graph
from relational_tensat.verify.evaluate import evaluate_graph
from relational_tensat.verify.unknown_operators import UnknownOperators

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
helper = onnx.helper


def one_node(node: Any, kind: int, shape: list[int]) -> Graph:
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, shape)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return from_onnx_model(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def computed(graph: Graph, x: np.ndarray[Any, Any]) -> tuple[Any, tuple[str, ...]]:
    unknown = UnknownOperators()
    y = evaluate_graph(graph, {"x": x}, {}, unknown)["y"]
    return y, unknown.stand_ins


def test_what_onnxruntime_has() -> None:
    graph = one_node(helper.make_node("Celu", ["x"], ["y"]), onnx.TensorProto.FLOAT, [3])
    y, stand_ins = computed(graph, np.array([-1.0, 0.0, 2.0]))
    assert stand_ins == ()
    np.testing.assert_allclose(y, [np.expm1(-1.0), 0.0, 2.0], rtol=1e-6)


def test_what_only_the_reference_has() -> None:
    node = helper.make_node("BitShift", ["x", "x"], ["y"], direction="LEFT")
    graph = one_node(node, onnx.TensorProto.UINT16, [3])  # onnxruntime has no kernel for uint16
    y, stand_ins = computed(graph, np.array([0, 1, 2], np.uint16))
    assert stand_ins == ()
    assert y.tolist() == [0, 2, 8]


@pytest.mark.parametrize("node", ["Thing", "RandomNormalLike"])
def test_what_nobody_has(node: str) -> None:
    domain = "mine" if node == "Thing" else ""
    graph = one_node(
        helper.make_node(node, ["x"], ["y"], domain=domain), onnx.TensorProto.FLOAT, [3]
    )
    x = np.array([-1.0, 0.0, 2.0])
    (first, stand_ins), (again, _) = computed(graph, x), computed(graph, x)
    assert stand_ins == ("mine.Thing" if domain else node,)
    np.testing.assert_array_equal(first, again)
