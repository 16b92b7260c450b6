"""``kernels import`` for a region of a model: ``run --fuse`` chooses among what was imported, too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relational_tensat import Options, kernels, optimize
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.models.builder import GraphBuilder
from relational_tensat.mugraph import kernel_finder
from relational_tensat.mugraph.candidate_cache import SizedCandidates
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
from relational_tensat.mugraph.graph.rewrites import named_by_place, with_inputs_called

ROWS, WIDTH, COLUMNS = 32, 64, 16


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two products with relu between, in a file, and a cache of its own."""
    monkeypatch.setenv("RELATIONAL_TENSAT_CACHE", str(tmp_path / "cache"))
    b = GraphBuilder("products")
    x, first, second = (
        b.input("x", ROWS, WIDTH),
        b.input("v", WIDTH, WIDTH),
        b.input("w", WIDTH, COLUMNS),
    )
    hidden = b.op("relu", b.op("matmul", x, first))
    save_model(b.build(b.op("matmul", hidden, second)), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def kernel_of(model: Path) -> tuple[Path, dict[str, Any]]:
    """Return what a search finds for its region, as a file and as JSON."""
    path = model.parent / "kernel.json"
    search = ["kernels", "search", str(model), "--region", "0", "--no-cache", "-o", str(path)]
    assert main([*search, "--max-kernels", "1"]) == 0
    return path, json.loads(path.read_text(encoding="utf-8"))


def renamed(content: Any, names: dict[str, str]) -> Any:
    """Return JSON with other index variables."""
    if isinstance(content, dict):
        return {key: renamed(value, names) for key, value in content.items()}
    if isinstance(content, list):
        return [renamed(value, names) for value in content]
    if not isinstance(content, str) or "=" not in content:
        return names.get(content, content)
    words = (word.partition("=") for word in content.split())
    return " ".join(f"{names[name]}={size}" for name, _, size in words)


def test_a_run_chooses_among_imported_kernels(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a region's tensors are called, and its kernel's index variables."""
    path, content = kernel_of(model)
    words = " ".join(content["inputs"].values()).split()
    names = {word.partition("=")[0]: f"other{n}" for n, word in enumerate(words)}
    del content["rows"]
    path.write_text(json.dumps(renamed(content, names)), encoding="utf-8")
    assert main(["kernels", "import", str(path), str(model), "--region", "0"]) == 0
    search = kernel_finder.searched

    def nothing(*given: Any) -> SizedCandidates:
        return replace(search(*given), graphs=(), is_complete=False)

    monkeypatch.setattr(kernel_finder, "searched", nothing)
    folder = model.parent / "kernels"
    options = Options.of(fuse=True, fuse_time_limit_s=None, kernels=folder, cost="a100")
    optimize(model, options, output=model.parent / "out.onnx")
    ((key, kernel),) = kernels.load(folder, "numpy").items()
    assert "other0=32" in (folder / f"{key}.json").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    x, v, w = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((ROWS, WIDTH), (WIDTH, WIDTH), (WIDTH, COLUMNS))
    )
    np.testing.assert_allclose(kernel(x, v, w), np.maximum(x @ v, 0) @ w, rtol=1e-3, atol=1e-3)


def test_inputs_that_lie_otherwise_in_memory_are_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A square weight that is read transposed was accepted: its index variables are the same."""
    path, content = kernel_of(model)
    name = list(content["inputs"])[1]
    content["inputs"][name] = " ".join(reversed(content["inputs"][name].split()))
    path.write_text(json.dumps(content), encoding="utf-8")
    for command in ("verify", "import"):
        capsys.readouterr()
        assert main(["kernels", command, str(path), str(model), "--region", "0"]) == 4
        assert f"input {name} lies in memory as [" in capsys.readouterr().err


def test_names_of_inputs_are_no_others(model: Path) -> None:
    graph = load_mugraph(kernel_of(model)[0])
    (result,) = graph.outputs
    called = with_inputs_called(graph, ["a", result, "c"])
    assert list(called.inputs) == ["a", result, "c"] and called.outputs == (f"{result}_0",)
    assert named_by_place(called) == named_by_place(graph) != graph
