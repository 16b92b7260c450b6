"""Small valid files of every kind that the program reads, to be damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relational_tensat.formats import from_onnx_model
from relational_tensat.formats.json_graph import write_json
from relational_tensat.rules.library import shipped_files
from relational_tensat.run.options import Options
from relational_tensat.run.pipeline import optimize


def seed_rules() -> str:
    """Return the text of a rule file to be damaged: the smallest of those that ship."""
    texts = [file.read_text(encoding="utf-8") for file in shipped_files()]
    return "".join(sorted(texts, key=len)[:2])


def onnx_models() -> dict[str, onnx.ModelProto]:
    """Return models that between them have windows, shapes, subgraphs and sparse weights."""
    return {"windows": _windows(), "shapes": _shapes(), "branches": _branches()}


def write_seeds(folder: Path, rules: str) -> dict[str, tuple[Path, str]]:
    """Write one file of each kind; return path and kind of damage by name.

    Args:
        rules: the text of a rule file.
    """
    files: dict[str, tuple[Path, str]] = {}
    for name, model in onnx_models().items():
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        files[name] = path, "onnx"
    graph = from_onnx_model(_windows())
    write_json(graph, folder / "model.json")
    files["json"] = folder / "model.json", "text"
    (folder / "seed.rules").write_text(rules, encoding="utf-8")
    files["rules"] = folder / "seed.rules", "text"
    database = folder / "run.duckdb"
    options = Options.of(
        cost="t4", db=database, rules=(folder / "seed.rules",), allow_unsound=True, iterations=2
    )
    optimize(folder / "windows.onnx", options, output=folder / "optimized.onnx")
    files["database"] = database, "bytes"
    return files


def _windows() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    weights = {
        "kernel": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "bias": rng.standard_normal(4).astype(np.float32),
        "scale": rng.random(4).astype(np.float32),
    }
    nodes = [
        helper.make_node(
            "Conv", ["x", "kernel", "bias"], ["c"],
            kernel_shape=[3, 3], strides=[1, 1], dilations=[1, 1], pads=[1, 1, 1, 1], group=1,
        ),
        helper.make_node(
            "BatchNormalization", ["c", "scale", "bias", "bias", "scale"], ["n"], epsilon=1e-5
        ),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Relu", ["r"], ["s"]),
        helper.make_node("MaxPool", ["s"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node(
            "AveragePool", ["p"], ["y"], kernel_shape=[2, 2], pads=[0, 0, 1, 1]
        ),
    ]  # fmt: skip
    return _model(nodes, {"x": (1, 3, 8, 8)}, {"y": (1, 4, 4, 4)}, weights)


def _shapes() -> onnx.ModelProto:
    weights = {
        "table": np.arange(20, dtype=np.float32).reshape(5, 4),
        "shape": np.array([2, -1], np.int64),
        "starts": np.array([0], np.int64),
        "ends": np.array([2], np.int64),
        "axes": np.array([1], np.int64),
        "right": np.ones((2, 3), np.float16),
    }
    nodes = [
        helper.make_node("Gather", ["table", "i"], ["g"], axis=0),
        helper.make_node("Transpose", ["g"], ["t"], perm=[1, 0]),
        helper.make_node("Reshape", ["t", "shape"], ["r"]),
        helper.make_node("Slice", ["r", "starts", "ends", "axes"], ["s"]),
        helper.make_node("Softmax", ["s"], ["m"], axis=-1),
        helper.make_node("Cast", ["m"], ["h"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["h", "right"], ["k"]),
        helper.make_node("Concat", ["k", "k"], ["y"], axis=0),
    ]
    model = _model(nodes, {"i": (3,)}, {"y": (4, 3)}, weights)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def _branches() -> onnx.ModelProto:
    """Return a model with an If, an LSTM and a sparse weight."""
    rng = np.random.default_rng(1)
    branch = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["a"])], "then", [], [_value("a", (2, 1, 3))]
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["b"])], "else", [], [_value("b", (2, 1, 3))]
    )
    nodes = [
        helper.make_node("If", ["flag"], ["v"], then_branch=branch, else_branch=other),
        helper.make_node("LSTM", ["v", "w", "r"], ["l"], hidden_size=2),
        helper.make_node("Add", ["v", "sparse"], ["z"]),
    ]
    weights = {
        "w": rng.standard_normal((1, 8, 3)).astype(np.float32),
        "r": rng.standard_normal((1, 8, 2)).astype(np.float32),
    }
    outputs = {"l": (2, 1, 1, 2), "z": (2, 1, 3)}
    model = _model(nodes, {"x": (2, 1, 3), "flag": ()}, outputs, weights)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    values = numpy_helper.from_array(np.array([1.0, 2.0], np.float32), "sparse")
    places = numpy_helper.from_array(np.array([0, 2], np.int64), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3]))
    return model


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, ...]],
    outputs: dict[str, tuple[int, ...]],
    weights: dict[str, Any],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "seed",
        [_value(name, shape) for name, shape in inputs.items()],
        [_value(name, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _value(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
