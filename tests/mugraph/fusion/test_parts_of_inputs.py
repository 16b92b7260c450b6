"""``run --fuse`` on models that slice, split, gather and join: onnxruntime computes the same of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat import Options, kernels, optimize
from relational_tensat.formats import save_model
from relational_tensat.tensor import Graph
from tests.mugraph.parts import cast_norm, gated, rotary


@pytest.mark.parametrize(
    ("model", "inner"),
    [
        (gated("split"), "Split"),
        (gated("gather"), "Gather"),
        (rotary(), "Concat"),
        (cast_norm(), "Cast"),
    ],
    ids=["split", "gather", "rotary", "cast"],
)
def test_parts_of_inputs_are_within_a_kernel(tmp_path: Path, model: Graph, inner: str) -> None:
    save_model(model, tmp_path / "in.onnx")
    options = Options.of(
        fuse=True,
        fuse_operators=5,
        fuse_kernels=1,
        fuse_time_limit_s=None,
        kernels=tmp_path / "kernels",
    )
    result = optimize(tmp_path / "in.onnx", options, output=tmp_path / "out.onnx")
    operators = result.graph.count_ops()
    assert operators["fused"] == 1 and set(operators) <= {"fused", "reshape"}
    (function,) = onnx.load(tmp_path / "out.onnx").functions
    assert inner in {node.op_type for node in function.node}
    before, after = (
        onnxruntime.InferenceSession(tmp_path / name, providers=["CPUExecutionProvider"])
        for name in ("in.onnx", "out.onnx")
    )
    random, dtype = np.random.default_rng(0), "float16" if inner == "Cast" else "float32"
    given = {
        value.name: random.standard_normal(value.shape).astype(dtype)
        for value in before.get_inputs()
    }
    ((expected,), (computed,)) = before.run(None, given), after.run(None, given)
    assert np.allclose(computed, expected, atol=1e-6)
    runner = "numpy" if inner == "Cast" else "c"  # C has float32 only
    (kernel,) = kernels.load(tmp_path / "kernels", runner).values()
    by_kernel = kernel(*(given[name] for name in sorted(given, reverse=True)))
    assert np.allclose(by_kernel.reshape(expected.shape), expected, atol=1e-5)
