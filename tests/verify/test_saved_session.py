"""What onnxruntime saves after its optimizations is read again, and says what it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.formats import save_model
from relational_tensat.tensor import Graph, Node, build_graph
from relational_tensat.verify import sessions
from relational_tensat.verify.sessions import data_of, save_session
from tests.formats.onnx_tools import feeds, session
from tests.graphs import f32, weight


def product() -> Graph:
    """Return a product with a constant matrix, which onnxruntime packs."""
    nodes = [Node("matmul", ("x", "w"), ("a",)), Node("tanh", ("a",), ("y",))]
    return build_graph("product", {"x": f32(4, 64)}, {"w": weight(64, 64)}, nodes, ["y"])


def test_what_is_saved_computes_the_same_and_says_what_it_is_for(tmp_path: Path) -> None:
    source = tmp_path / "model.onnx"
    save_model(product(), source)
    n_bytes = {}
    for is_packed in (False, True):
        target = tmp_path / f"{is_packed}.onnx"
        n_bytes[is_packed] = save_session(
            source, target, 1, is_packed=is_packed, properties={"saved_for": "this"}
        )
        assert data_of(target).stat().st_size == n_bytes[is_packed]
        entries = {
            each.key: each.value
            for each in onnx.load(target, load_external_data=False).metadata_props
        }
        assert entries["saved_for"] == "this"
        values = feeds(session(source))
        expected = session(source).run(None, values)
        np.testing.assert_allclose(session(target).run(None, values)[0], expected[0], rtol=1e-6)
    assert n_bytes[True] >= n_bytes[False] + 64 * 64 * 4  # the matrix is there twice


def test_a_model_of_small_weights_has_no_data_beside_it(tmp_path: Path) -> None:
    source, target = tmp_path / "model.onnx", tmp_path / "saved.onnx"
    graph = build_graph("m", {"x": f32(2, 3)}, {}, [Node("relu", ("x",), ("y",))], ["y"])
    save_model(graph, source)
    assert save_session(source, target, 1, is_packed=True, properties={}) == 0


def test_what_onnxruntime_does_not_save_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = tmp_path / "model.onnx", tmp_path / "saved.onnx"
    source.write_bytes(b"no model")
    with pytest.raises(InputError, match=r"^onnxruntime does not save it: [^\n]+$"):
        save_session(source, target, 1, is_packed=False, properties={})
    monkeypatch.setattr(sessions, "open_session", lambda *_, **__: None)
    with pytest.raises(InputError, match="it wrote nothing"):
        save_session(source, target, 1, is_packed=False, properties={})
