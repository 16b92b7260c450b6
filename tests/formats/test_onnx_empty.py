"""Tensors without elements: constants where they are computed, operands of opaque nodes elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relational_tensat.base.errors import ModelError
from relational_tensat.formats import from_onnx_model, load_model, save_model
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize
from relational_tensat.tensor import Node, TensorType, build_graph
from relational_tensat.tensor.operators import get_operator, operators
from tests.formats.onnx_tools import assert_same_results, model, session, tensor


def _cache(past: int) -> onnx.ModelProto:
    """Return a step of a decoder with a cache of ``past`` positions."""
    nodes = [
        helper.make_node("Relu", ["past"], ["p"]),
        helper.make_node("Concat", ["p", "x"], ["all"], axis=1),
        helper.make_node("ReduceSum", ["p"], ["s"], keepdims=1),
        helper.make_node("Add", ["all", "s"], ["y"]),
        helper.make_node("Neg", ["p"], ["n"]),
    ]
    inputs = [tensor("past", [2, past, 3]), tensor("x", [2, 1, 3])]
    return model(nodes, inputs, [tensor("y", [2, past + 1, 3]), tensor("n", [2, past, 3])])


def test_what_has_no_elements_is_a_constant_and_joins_nothing() -> None:
    graph = from_onnx_model(_cache(0))
    assert [node.op for node in graph.nodes] == ["concat", "add"]
    assert graph.nodes[0].inputs == ("x",)
    assert graph.weights["n"].type == TensorType("float32", (2, 0, 3))
    assert from_onnx_model(_cache(1)).count_ops()["concat"] == 1


@pytest.mark.parametrize("past", [0, 2])
def test_a_run_with_an_empty_cache_computes_the_same(past: int, tmp_path: Path) -> None:
    source, target = tmp_path / "a.onnx", tmp_path / "b.onnx"
    source.write_bytes(_cache(past).SerializeToString())
    result = optimize(source, Options.of(cost="t4", iterations=2), output=target)
    assert result.verification.ok or result.unchanged
    inputs = {
        "past": np.ones((2, past, 3), np.float32),
        "x": np.arange(6, dtype=np.float32).reshape(2, 1, 3),
    }
    expected = session(source).run(None, inputs)
    for a, b in zip(expected, session(target).run(None, inputs), strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


def test_empty_models_go_through_both_formats(tmp_path: Path) -> None:
    """A product over nothing gives zeros; JSON and ONNX keep it."""
    original = model(
        [helper.make_node("MatMul", ["a", "b"], ["y"])],
        [tensor("a", [2, 0]), tensor("b", [0, 3])],
        [tensor("y", [2, 3])],
    )
    save_model(from_onnx_model(original), tmp_path / "a.json")
    save_model(load_model(tmp_path / "a.json"), tmp_path / "b.onnx")
    assert_same_results(original, onnx.load(tmp_path / "b.onnx"), {})


def test_a_dimension_of_size_0_can_be_asked_for() -> None:
    dynamic = model(
        [helper.make_node("Exp", ["x"], ["y"])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
    )
    graph = from_onnx_model(dynamic, {"n": 0})
    assert graph.weights["y"].type.shape == (0, 4)


def test_operators_that_compute_take_no_empty_operands() -> None:
    """Only what passes tensors on does: no rule is verified for others."""
    empty = TensorType("float32", (0, 3))
    assert [name for name, op in operators().items() if op.takes_empty] == [
        "noop", "opaque", "part",
    ]  # fmt: skip
    assert get_operator("noop").check((empty,), {}) == (empty,)
    with pytest.raises(ModelError, match=r"relu: operand 0 is float32\[0,3\], which has no elem"):
        build_graph("g", {"x": empty}, {}, [Node("relu", ("x",), ("y",))], ["y"])
