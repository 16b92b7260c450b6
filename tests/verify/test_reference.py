"""Models that onnxruntime has no kernels for are compared by ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from relational_tensat import Options, optimize
from relational_tensat.formats import from_onnx_model
from relational_tensat.verify.runtime import verify_files

REFERENCE = "ONNX's reference evaluator"


def _model(rows: str, last: str) -> onnx.ModelProto:
    text = f"""<ir_version: 10, opset_import: ["" : 22]>
    g (bfloat16[{rows},8] x) => (bfloat16[{rows},8] y) {{
      a = MatMul(x, W) b = Relu(a) c = Relu(b) y = {last}(c)
    }}"""
    model = onnx.parser.parse_model(text)
    numbers = np.random.default_rng(0).normal(size=64).tolist()
    kind = onnx.TensorProto.BFLOAT16
    model.graph.initializer.append(onnx.helper.make_tensor("W", kind, [8, 8], numbers))
    return model


@pytest.mark.parametrize("rows", ["4", "N"])
def test_bfloat16_is_computed(rows: str) -> None:
    options = Options.of(cost="t4", only=("drop-second-application",))
    result = optimize(_model(rows, "Tanh"), options)
    assert [node.op_type for node in result.model.graph.node] == ["MatMul", "Relu", "Tanh"]
    assert any(
        compared.setting.what.startswith(REFERENCE) for compared in result.verification.compared
    )


@pytest.mark.filterwarnings("error")
def test_what_overflows_is_no_warning() -> None:
    outcome = verify_files(
        from_onnx_model(_model("4", "Log")), *[_model("4", "Log").SerializeToString()] * 2
    )
    assert outcome.ok


def test_a_mistake_is_found() -> None:
    right, wrong = (_model("4", op).SerializeToString() for op in ("Tanh", "Neg"))
    graph = from_onnx_model(_model("4", "Tanh"))
    assert verify_files(graph, right, right).ok
    outcome = verify_files(graph, right, wrong)
    assert outcome.runs == 1
    assert not outcome.ok
