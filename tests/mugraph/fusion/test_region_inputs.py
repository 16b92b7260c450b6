"""Kernels of a region of a model: what another file says of its inputs has to fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.models.builder import GraphBuilder
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
from relational_tensat.mugraph.graph.rewrites import with_inputs_called

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


def test_inputs_that_lie_otherwise_in_memory_are_refused(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A square weight that is read transposed was accepted: its index variables are the same."""
    path, content = kernel_of(model)
    name = list(content["inputs"])[1]
    content["inputs"][name] = " ".join(reversed(content["inputs"][name].split()))
    path.write_text(json.dumps(content), encoding="utf-8")
    capsys.readouterr()
    assert main(["kernels", "verify", str(path), str(model), "--region", "0"]) == 4
    assert f"input {name} lies in memory as [" in capsys.readouterr().err


def test_names_of_inputs_are_no_others(model: Path) -> None:
    graph = load_mugraph(kernel_of(model)[0])
    (result,) = graph.outputs
    called = with_inputs_called(graph, ["a", result, "c"])
    assert list(called.inputs) == ["a", result, "c"] and called.outputs == (f"{result}_0",)
    assert with_inputs_called(called, list(graph.inputs)).inputs == graph.inputs
