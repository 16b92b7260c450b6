"""A model's file in OpenVINO: outputs by the names that the file gives them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("openvino", reason="needs OpenVINO")
pytest.importorskip("onnx", reason="needs onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

from relational_tensat.cost.cpu.openvino_session import OpenVinoRun


@pytest.mark.parametrize("last", ["Cast", "Mul", "Identity"])
def test_an_output_of_an_operator_that_does_nothing_has_its_name(tmp_path: Path, last: str) -> None:
    """OpenVINO leaves the operator out, and gives its operand's output both names."""
    operands = ["rectified", "one"] if last == "Mul" else ["rectified"]
    attributes = {"to": TensorProto.FLOAT} if last == "Cast" else {}
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    nodes = [
        helper.make_node("Relu", ["x"], ["rectified"]),
        helper.make_node(last, operands, ["y"], **attributes),
    ]
    one = numpy_helper.from_array(np.ones((), np.float32), "one")
    graph = helper.make_graph(nodes, "elided", [x], [y], [one])
    path = tmp_path / "elided.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    found = OpenVinoRun(path, {"x": np.array([-1, 2], np.float32)}, 1).outputs()
    np.testing.assert_array_equal(found["y"], [0, 2])
