"""The pass of onnx-ir, among its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx_ir = pytest.importorskip("onnx_ir", reason="needs onnx-ir")

from relational_tensat import Options  # noqa: E402
from relational_tensat.adapters.onnx_ir_pass import OptimizePass  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def test_a_model_is_optimized_between_other_passes() -> None:
    import onnxruntime
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    model = onnx_ir.load(ROOT / "bench" / "inputs" / "encoder_block.onnx")
    before = onnx_ir.to_proto(model).SerializeToString()
    own = OptimizePass(Options.of(effort="low"))
    passed = onnx_ir.passes.Sequential(own, RemoveUnusedNodesPass())(model)
    assert passed.modified
    assert own.results[0].gain.basis == "modelled"
    sessions = [
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        for data in (before, onnx_ir.to_proto(passed.model).SerializeToString())
    ]
    draw = np.random.default_rng(0)
    values = {
        each.name: draw.standard_normal(each.shape) > 0
        if "bool" in each.type
        else draw.standard_normal(each.shape).astype(np.float32)
        for each in sessions[0].get_inputs()
    }
    expected, found = (session.run(None, values) for session in sessions)
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
