"""``run --fuse`` on attention of one query: keys are split among blocks, and a second kernel adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from bench.models.builder import GraphBuilder
from relational_tensat import Options, Result, kernels, optimize
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.mugraph.fusion import kernel_fusion
from relational_tensat.mugraph.fusion.candidates import KernelCandidate, region_candidates
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
from relational_tensat.tensor import Graph

HEADS, KEYS, WIDTH = 8, 4096, 32


def decoding() -> Graph:
    """One query of several heads, and many keys."""
    b = GraphBuilder("decoding")
    q = b.op("reshape", b.input("q", 1, HEADS * WIDTH), shape=(HEADS, 1, WIDTH))
    weights = b.op("softmax", b.op("matmul", q, b.input("k", HEADS, WIDTH, KEYS)), axis=2)
    mixed = b.op("matmul", weights, b.input("v", HEADS, KEYS, WIDTH))
    return b.build(b.op("reshape", mixed, shape=(1, HEADS * WIDTH)))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A folder with the model and what became of it; and the result."""
    folder = tmp_path_factory.mktemp("decoding")
    save_model(decoding(), folder / "in.onnx")
    options = Options.of(
        fuse=True, fuse_operators=5, fuse_time_limit_s=None, cost="a100", iterations=2, verify_runs=1,
        kernels=folder / "kernels", db=folder / "run.duckdb",
    )  # fmt: skip

    def whole(*given: Any) -> list[KernelCandidate]:  # parts of it would be sought as well
        return [c for c in region_candidates(*given) if len(c.program.steps) == 5]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_fusion, "region_candidates", whole)
        return folder, optimize(folder / "in.onnx", options, output=folder / "out.onnx")


@pytest.mark.nightly
def test_two_kernels_are_used_where_they_cost_less(run: tuple[Path, Result]) -> None:
    folder, result = run
    plain = optimize(folder / "in.onnx", Options.of(cost="a100", iterations=2, verify_runs=1))
    launch_us = 4.0
    assert result.optimal
    assert 2 * launch_us < result.cost_after_us < plain.cost_after_us
    assert result.verification.runs
    assert result.fusion is not None
    assert [(used.launches, used.results) for used in result.fusion.used] == [(2, 1)]
    (fused,) = (node for node in result.graph.nodes if node.op == "fused")
    graph = load_mugraph(folder / "kernels" / f"{fused.attrs['mugraph']}.json")
    first, second = graph.kernels
    assert second.block.iterators
    assert {it.tensor for it in second.block.iterators} == {s.output for s in first.block.savers}


@pytest.mark.nightly
def test_what_is_written_computes_what_the_model_does(
    run: tuple[Path, Result],
) -> None:
    folder, _ = run
    ((key, kernel),) = kernels.load(folder / "kernels", "numpy").items()
    for suffix in (".py", ".cu"):
        text = (folder / "kernels" / f"{key}{suffix}").read_text()
        assert all(f"{name}(" in text for name in ("k1", "k2"))
    session = onnxruntime.InferenceSession(folder / "in.onnx", providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {
        value.name: random.standard_normal(value.shape).astype(np.float32)
        for value in session.get_inputs()
    }
    feeds["k"] *= 30  # logits of some hundreds
    (expected,) = session.run(None, feeds)
    actual = kernel(feeds["q"], feeds["k"], feeds["v"])
    np.testing.assert_allclose(actual.ravel(), expected.ravel(), rtol=1e-3, atol=1e-3)
    model = onnx.load(folder / "out.onnx")
    assert [function.name for function in model.functions] == [f"fused_{key}"]


@pytest.mark.nightly
def test_the_database_has_it(
    run: tuple[Path, Result], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _ = run
    assert main(["explain", str(folder / "run.duckdb"), "--check"]) == 0
    assert "checked: every step is what its rule says" in capsys.readouterr().out
    assert main(["view", str(folder / "run.duckdb"), "-o", str(tmp_path / "page.html")]) == 0
