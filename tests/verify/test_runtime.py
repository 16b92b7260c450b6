"""Files are compared as they are written, and in the session that users run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.tensor import Graph, Node, Weight, build_graph
from relational_tensat.verify import verify_files
from relational_tensat.verify.sessions import Session
from tests.graphs import f32

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def ranges(folder: Path, start: tuple[int, ...]) -> tuple[Graph, Path]:
    """Write x + range(s, 3, 1), whose s has a shape that only constant folding knows."""
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Cast", ["shape32"], ["shape"], to=types.INT64),
        helper.make_node("Reshape", ["zero", "shape"], ["s"]),
        helper.make_node("Range", ["s", "l", "n"], ["r"]),
        helper.make_node("Add", ["x", "r"], ["y"]),
    ]
    data = [
        helper.make_tensor("zero", types.FLOAT, [], [0.0]),
        helper.make_tensor("l", types.FLOAT, [], [3.0]),
        helper.make_tensor("n", types.FLOAT, [], [1.0]),
        helper.make_tensor("shape32", types.INT32, [len(start)], start),
    ]
    infos = [helper.make_tensor_value_info(name, types.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph(nodes, "range", infos[:1], infos[1:], data)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = folder / f"range{len(start)}.onnx"
    onnx.save_model(model, path)
    graph = build_graph(
        "range",
        {"x": f32(3)},
        {"r": Weight(f32(3), np.arange(3, dtype=np.float32))},
        [Node("add", ("x", "r"), ("y",))],
        ["y"],
    )
    return graph, path


def test_what_only_onnxruntimes_own_optimizations_show_is_found(tmp_path: Path) -> None:
    graph, before = ranges(tmp_path, ())
    _, after = ranges(tmp_path, (1,))  # a vector where ONNX wants a number
    as_written = verify_files(graph, before, after)
    assert as_written.ok
    by_default = Session.AS_BY_DEFAULT
    assert verify_files(graph, before, before, run_as=by_default).ok
    with pytest.raises(VerificationError, match="with its optimizations cannot run the optimized"):
        verify_files(graph, before, after, run_as=by_default)
