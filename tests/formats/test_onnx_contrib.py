"""onnxruntime's own operators read as their parts: they compute what onnxruntime computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from relational_tensat.base.errors import ModelError
from relational_tensat.formats import save_model
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
    case: tuple[str, list[Any], dict[str, Any], list[str]],
    folder: Path,
    domain: str = "com.microsoft",
    opset: int = 20,
) -> tuple[Path, dict[str, Any]]:
    op_type, operands, attributes, outputs = case
    feeds = {f"i{place}": array for place, array in enumerate(operands) if array is not None}
    names = [f"i{place}" if array is not None else "" for place, array in enumerate(operands)]
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
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
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


def test_what_nothing_is_made_of_is_written_as_it_was(tmp_path: Path) -> None:
    """Of two outputs, too, both of which are used."""
    path, feeds = written(CASES[1], tmp_path)
    save_model(read_onnx(path, {}), tmp_path / "again.onnx")
    original, result = onnx.load(path), onnx.load(tmp_path / "again.onnx")
    assert list(result.graph.node) == list(original.graph.node) and feeds


#: What onnxruntime has in the default operator set, in which version, and as what it is read.
IN_THE_DEFAULT_SET: list[tuple[Any, int, str]] = [
    (("SimplifiedLayerNormalization", [X, ROW], {"epsilon": 1e-2}, ["y"]), 13, "rms_norm"),
    (("SimplifiedLayerNormalization", [X, ROW], {}, ["y", "deviation"]), 17, "opaque"),
    (("LayerNormalization", [X, ROW, floats(8)], {"epsilon": 1e-3}, ["y"]), 14, "layer_norm"),
    (("ScaledTanh", [X], {"alpha": 0.5, "beta": 2.0}, ["y"]), 9, "opaque"),
]


@pytest.mark.parametrize(("case", "opset", "op"), IN_THE_DEFAULT_SET)
def test_onnxruntimes_operators_of_the_default_set(
    case: Any, opset: int, op: str, tmp_path: Path
) -> None:
    """ONNX has none of them in these versions: its checker refuses them, and onnxruntime runs them."""
    path, feeds = written(case, tmp_path, "", opset)
    graph = read_onnx(path, {})
    assert [node.op for node in graph.nodes] == [op]
    results = evaluate_graph(graph, feeds, {})
    save_model(graph, tmp_path / "again.onnx")
    assert list(onnx.load(tmp_path / "again.onnx").graph.node) == list(onnx.load(path).graph.node)
    session = onnxruntime.InferenceSession(tmp_path / "again.onnx")
    for name, expected in zip(graph.outputs, session.run(None, feeds), strict=True):
        np.testing.assert_allclose(results[name], expected, rtol=1e-4, atol=1e-4)


def test_an_operator_that_nobody_has_is_refused(tmp_path: Path) -> None:
    path, _ = written(("Wonder", [X], {}, ["y"]), tmp_path, "", 17)
    with pytest.raises(ModelError, match="No Op registered for Wonder"):
        read_onnx(path, {})
