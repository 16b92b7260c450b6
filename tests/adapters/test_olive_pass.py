"""The pass of Olive, in a workflow of Olive's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("olive", reason="needs Olive")
pytestmark = pytest.mark.filterwarnings("ignore")  # what Olive says of others

ROOT = Path(__file__).resolve().parents[2]


def test_a_workflow_has_the_pass_before_olives_own(tmp_path: Path) -> None:
    import onnx
    from olive.workflows import run

    from relational_tensat.adapters.olive_pass import package_config

    source = ROOT / "bench" / "inputs" / "encoder_block.onnx"
    workflow: dict[str, Any] = {
        "input_model": {"type": "ONNXModel", "model_path": str(source)},
        "passes": {
            "ours": {"type": "RelationalTensat", "options": {"effort": "low"}},
            "theirs": {"type": "OnnxPeepholeOptimizer"},
        },
        "output_dir": str(tmp_path / "out"),
        "cache_dir": str(tmp_path / "cache"),
        "evaluate_input_model": False,
    }
    run(workflow, package_config=str(package_config(tmp_path / "package.json")))
    (found,) = (tmp_path / "out").rglob("*.onnx")
    assert len(onnx.load(found).graph.node) < len(onnx.load(source).graph.node)
