"""onnxruntime's Gelu replaced by a kernel: at any size, in place, and only where all nodes fit."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import relational_tensat
from relational_tensat.base.errors import InputError
from relational_tensat.cost import AnalyticSource, load_profile
from relational_tensat.custom_ops.manifest import MANIFEST, folder_of, write_manifest
from relational_tensat.custom_ops.overrides import BLOCK, can_override, override_library
from relational_tensat.custom_ops.parts import override_kernel
from relational_tensat.custom_ops.sessions import register_library
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from tests.with_compilers import needs_c


@pytest.fixture(scope="module")
def gelu() -> MuGraph:
    return override_kernel("Gelu", AnalyticSource(load_profile("cpu")))


def _model(
    *, dtype: int = TensorProto.FLOAT, attrs: dict[str, Any] | None = None
) -> onnx.ModelProto:
    """Gelu between functions whose memory it may take."""
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Gelu", ["a"], ["b"], **(attrs or {})),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    shape = ["rows", "width"]
    values = [helper.make_tensor_value_info(name, dtype, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "gelu", values[:1], values[1:])
    imports = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def _session(model: onnx.ModelProto, library: Path | None = None) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if library is not None:
        register_library(options, library)
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


@needs_c
def test_a_replaced_operator_computes_the_same_at_any_size(gelu: MuGraph) -> None:
    own, replaced = _session(_model()), _session(_model(), override_library({"Gelu": gelu}))
    for shape in ((0, 3), (1, 1), (3, 7), (1, BLOCK), (1, BLOCK + 1), (5, 333), (64, 100)):
        x = 3 * np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        x.flat[:1] = np.inf
        expected, found = (session.run(None, {"x": x})[0] for session in (own, replaced))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@needs_c
def test_a_kernel_that_computes_something_else_is_refused(gelu: MuGraph) -> None:
    """So it is the kernel that runs, not onnxruntime's."""
    text = json.dumps(encoded(gelu))
    assert '"gelu"' in text or '"erf"' in text
    other = text.replace('"gelu"', '"tanh"').replace('"erf"', '"tanh"')
    with pytest.raises(InputError, match="Gelu: the kernel computes something else"):
        override_library({"Gelu": decoded(json.loads(other), "other")})


@needs_c
def test_another_approximation_is_refused_when_a_session_is_made(gelu: MuGraph) -> None:
    model = _model(attrs={"approximate": "tanh"})
    with pytest.raises(Exception, match="an approximation that no kernel has"):
        _session(model, override_library({"Gelu": gelu}))


def test_only_nodes_that_fit_are_replaced() -> None:
    assert can_override("Gelu", _model())
    assert can_override("Gelu", _model(attrs={"approximate": "none"}))
    assert not can_override("Gelu", _model(attrs={"approximate": "tanh"}))
    assert not can_override("Gelu", _model(dtype=TensorProto.FLOAT16))
    none = _model()
    del none.graph.node[1:2]
    none.graph.node[1].input[0] = "a"
    assert not can_override("Gelu", none)
    inner = _model().graph
    for value in (*inner.input, *inner.output):
        value.type.tensor_type.ClearField("shape")
    body = helper.make_graph(
        [inner.node[1]], "body", [], [helper.make_empty_tensor_value_info("b")]
    )
    choice = helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)
    deep = _model()
    deep.graph.node.append(choice)
    assert not can_override("Gelu", deep)


@needs_c
def test_a_manifest_replaces_operators_unless_it_is_not_to(
    gelu: MuGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "model.opt.onnx"
    onnx.save(_model(), file)
    write_manifest((), file, {"Gelu": gelu})
    names = sorted(each.name for each in folder_of(file).iterdir())
    assert names == ["custom_op.c", "kernel_of_override_0.c", "manifest.json", "overrides.c"]
    assert relational_tensat.register(onnxruntime.SessionOptions(), file) == ("Gelu",)
    without = relational_tensat.register(onnxruntime.SessionOptions(), file, overrides=False)
    assert without == ()
    x = np.ones((2, 3), np.float32)
    (found,) = relational_tensat.session(file).run(None, {"x": x})
    np.testing.assert_allclose(found, 0.15865525, rtol=1e-5)
    manifest = folder_of(file) / MANIFEST
    content = json.loads(manifest.read_text())
    for name, graph in (("Relu", encoded(gelu)), ("Gelu", {"format": "?"})):
        manifest.write_text(json.dumps({**content, "overrides": {name: graph}}))
        with pytest.raises(InputError):
            relational_tensat.session(file)
    manifest.write_text(json.dumps(content))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", "")
    with caplog.at_level(logging.WARNING, "relational_tensat"):
        relational_tensat.session(file)
    assert "runs without its kernels" in caplog.text
