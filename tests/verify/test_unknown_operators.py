"""Opaque operators: in onnxruntime, by ONNX's reference, else a stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relational_tensat.formats import from_onnx_model
from relational_tensat.tensor import Graph, TensorType
from relational_tensat.verify.evaluate import evaluate_graph
from relational_tensat.verify.unknown_operators import UnknownOperators, stand_in
from tests.graphs import f32


def test_they_are_functions_of_name_and_operands() -> None:
    x = np.random.default_rng(0).standard_normal((3, 4))
    first, again, other = (stand_in(n, [x], [f32(2, 5)])[0] for n in ("f", "f", "g"))
    assert first.shape == (2, 5)
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()


@pytest.mark.parametrize("shape", [(1,), (2, 2), (5, 7), ()])
def test_every_element_matters_and_rounding_does_not(shape: tuple[int, ...]) -> None:
    x, y = np.linspace(-1, 1, 6), np.linspace(1, 2, 4)
    (before,) = stand_in("f", [x, y], [f32(*shape)])
    assert before.shape == shape
    for operand in (x, y):
        for index in range(operand.size):
            kept = operand[index]
            operand[index] += 0.01
            (moved,) = stand_in("f", [x, y], [f32(*shape)])
            operand[index] = kept
            assert np.abs(moved - before).max() > 1e-3
    (rounded,) = stand_in("f", [x * (1 + 1e-15), y], [f32(*shape)])
    np.testing.assert_allclose(rounded, before, rtol=1e-12, atol=1e-12)


def test_values_of_all_kinds() -> None:
    operands = [np.array(["a", "b"], object), [np.ones(2), np.zeros(3)], np.array([True])]
    kinds = [TensorType("int64", (4,)), TensorType("bool", (2, 2)), TensorType("opaque:", ())]
    whole, flags, features = stand_in("f", operands, kinds)
    assert whole.dtype == np.int64 and set(whole.tolist()) <= {0, 1}
    assert flags.dtype == np.bool_ and flags.shape == (2, 2)
    assert features.ndim == 1  # nothing is known of it
    changed = stand_in("f", [np.array(["a", "c"], object), *operands[1:]], kinds)
    assert not np.array_equal(changed[2], features)
    assert stand_in("f", [np.zeros((0, 3))], [f32(0, 2)])[0].shape == (0, 2)


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


def test_what_is_computed_from_a_stand_in_has_its_declared_shape() -> None:
    """Of the unknown value no shape is known; a cast of it is the tensor that it is said to be."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("Unknown", ["x"], ["s"], domain="mine"),
            helper.make_node("Cast", ["s"], ["c"], to=1),
            helper.make_node("Relu", ["c"], ["y"]),
        ],
        "two",
        [value("x", 1, [2, 3])],
        [value("y", 1, [2, 3])],
        value_info=[value("s", 1, None), value("c", 1, [2, 3])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    read = from_onnx_model(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    y, unknown = computed(read, np.ones((2, 3), np.float32))
    assert y.shape == (2, 3)
    assert "mine.Unknown" in unknown
