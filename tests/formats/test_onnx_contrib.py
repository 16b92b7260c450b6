"""onnxruntime's own operators read as their parts: they compute what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from relational_tensat.formats import save_model
from relational_tensat.formats.onnx_metadata import RUNTIME_DOMAIN, RUNTIME_OPERATORS
from relational_tensat.formats.onnx_read import read_onnx
from relational_tensat.verify.evaluate import evaluate_graph

_DRAWN = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return _DRAWN.standard_normal(shape).astype(np.float32)


X, SKIP, ROW = floats(2, 3, 8), floats(2, 3, 8), floats(8)
PLACES = np.array([[0, 5, 2], [3, 3, 1]], np.int64)
TABLE = floats(6, 2)
HEADS = floats(2, 3, 3, 4)

#: operator, operands, attributes, how many outputs are used.
CASES: list[tuple[str, list[Any], dict[str, Any], list[str]]] = [
    ("SkipLayerNormalization", [X, SKIP, ROW, floats(8)], {"epsilon": 1e-3}, ["y"]),
    ("SkipLayerNormalization", [X, SKIP, ROW], {}, ["y", "", "", "sum"]),
    ("SkipLayerNormalization", [X, SKIP, ROW, floats(8), floats(8)], {}, ["y", "", "", "sum"]),
    ("SkipSimplifiedLayerNormalization", [X, SKIP, ROW], {"epsilon": 1e-2}, ["y", "", "", "sum"]),
    ("SkipSimplifiedLayerNormalization", [X, SKIP, ROW, floats(8)], {}, ["y"]),
    ("SimplifiedLayerNormalization", [X, ROW], {"epsilon": 1e-2, "axis": -1}, ["y"]),
    ("FastGelu", [X], {}, ["y"]),
    ("FastGelu", [X, ROW], {}, ["y"]),
    ("BiasGelu", [X, ROW], {}, ["y"]),
    ("QuickGelu", [X], {}, ["y"]),
    ("QuickGelu", [X], {"alpha": 0.5}, ["y"]),
    ("FusedMatMul", [X, SKIP], {"transB": 1, "alpha": 0.25}, ["y"]),
    ("FusedMatMul", [X, SKIP], {"transA": 1}, ["y"]),
    ("RotaryEmbedding", [HEADS, PLACES, TABLE, floats(6, 2)], {}, ["y"]),
    ("RotaryEmbedding", [X, PLACES, TABLE, floats(6, 2)], {"num_heads": 2}, ["y"]),
    ("MultiHeadAttention", [X, floats(2, 5, 8), floats(2, 5, 8)], {"num_heads": 2}, ["y"]),
    (
        "MultiHeadAttention",
        [X, floats(2, 5, 8), floats(2, 5, 8), None, None, floats(2, 2, 3, 5)],
        {"num_heads": 2, "scale": 0.3},
        ["y"],
    ),
]
#: What is not read as parts.
OPAQUE: list[tuple[str, list[Any], dict[str, Any], list[str]]] = [
    ("SkipLayerNormalization", [X, SKIP, ROW], {}, ["y", "mean"]),
    ("FusedMatMul", [HEADS, HEADS], {"transBatchA": 1, "transBatchB": 1}, ["y"]),
    ("RotaryEmbedding", [HEADS, PLACES, TABLE, TABLE], {"interleaved": 1}, ["y"]),
    ("RotaryEmbedding", [HEADS, np.array([0], np.int64), TABLE, TABLE], {}, ["y"]),
    ("MultiHeadAttention", [X, X, X], {"num_heads": 2, "unidirectional": 1}, ["y"]),
]


def written(
    case: tuple[str, list[Any], dict[str, Any], list[str]], folder: Path
) -> tuple[Path, dict[str, Any]]:
    op_type, operands, attributes, outputs = case
    feeds = {f"i{place}": array for place, array in enumerate(operands) if array is not None}
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(operands)]
    domain = "" if op_type in RUNTIME_OPERATORS else RUNTIME_DOMAIN
    node = helper.make_node(op_type, names, outputs, domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in feeds.items()
    ]
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * operands[0].ndim)
        for name in filter(None, outputs)
    ]
    graph = helper.make_graph([node], "one", inputs, results)
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    path = folder / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), path)
    return path, feeds


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{len(case[1])}-{case[2]}")
def test_parts_compute_the_same(case: Any, tmp_path: Path) -> None:
    path, feeds = written(case, tmp_path)
    graph = read_onnx(path, {})
    assert "opaque" not in {node.op for node in graph.nodes}
    results = evaluate_graph(graph, feeds, {})
    session = onnxruntime.InferenceSession(path)
    for name, expected in zip(graph.outputs, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(results[name], expected, rtol=1e-4, atol=1e-4)
        assert graph.types[name].shape == expected.shape  # type: ignore[union-attr]


@pytest.mark.parametrize("case", OPAQUE, ids=lambda case: f"{case[0]}-{case[2]}")
def test_others_stay_as_they_are(case: Any, tmp_path: Path) -> None:
    path, _ = written(case, tmp_path)
    assert [node.op for node in read_onnx(path, {}).nodes] == ["opaque"]


@pytest.mark.parametrize("case", [CASES[1], CASES[5]], ids=lambda case: case[0])
def test_what_nothing_is_made_of_is_written_as_it_was(case: Any, tmp_path: Path) -> None:
    """Of two outputs, too, both of which are used; and where ONNX's checker knows no such operator."""
    path, feeds = written(case, tmp_path)
    save_model(read_onnx(path, {}), tmp_path / "again.onnx")
    original, result = onnx.load(path), onnx.load(tmp_path / "again.onnx")
    assert list(result.graph.node) == list(original.graph.node) and feeds
