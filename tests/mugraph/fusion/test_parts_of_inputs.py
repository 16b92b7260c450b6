"""``run --fuse`` on models that slice, split, gather and join: onnxruntime computes the same of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from relational_tensat import Options, kernels, optimize
from relational_tensat.formats import save_model
from relational_tensat.mugraph.fusion.candidates import region_candidates
from relational_tensat.mugraph.regions.regions import RegionRow
from relational_tensat.tensor import Graph, Node, build_graph
from tests.mugraph.parts import cast_norm, gated, of_floats, rotary, t4_that_copies


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
        cost=t4_that_copies(tmp_path),
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


def test_casts_that_would_round_otherwise_end_a_region() -> None:
    """Factors of products have the kernel's elements, and nothing within may have fewer bits than these."""
    narrow, wide = of_floats(8, 16, dtype="float16"), of_floats(8, 16)
    up = [
        Node("cast", ("x",), ("wide",), {"dtype": "float32"}),
        Node("cast", ("w",), ("factor",), {"dtype": "float32"}),
        Node("matmul", ("wide", "factor"), ("product",)),
        Node("tanh", ("product",), ("t",)),
        Node("cast", ("t",), ("y",), {"dtype": "float16"}),
    ]
    down = [
        Node("tanh", ("x",), ("t",)),
        Node("cast", ("t",), ("narrow",), {"dtype": "float16"}),
        Node("cast", ("narrow",), ("again",), {"dtype": "float32"}),
        Node("exp", ("again",), ("y",)),
    ]
    for kind, nodes, reason in (
        (narrow, up, "a product of elements of float32"),
        (wide, down, "elements of float16 within"),
    ):
        kinds = {"x": kind, "w": of_floats(16, 8, dtype=kind.dtype)}
        model = build_graph("casts", kinds, {}, nodes, ["y"])
        left: list[RegionRow] = []
        found = region_candidates(model, 10, left.append)
        assert "cast" not in {node.op for candidate in found for node in candidate.nodes}
        assert reason in {row.reason for row in left}
    (candidate, *_) = region_candidates(cast_norm(), 10)
    assert candidate.is_cast and candidate.dtype == "float16"
