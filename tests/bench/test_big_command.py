"""The bench of big e-graph files, on small ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.__main__ import main
from bench.big import command as big_command
from bench.big import models
from bench.big.egraphs import SHAPES, write_egraph
from bench.big.transformers import Shape
from relational_tensat.extract import ExtractionOptions, extract, topological_order
from relational_tensat.extract.index import edge_owner
from relational_tensat.extract.interchange import SerializedEGraph, read_egraph_json


def layers(egraph: SerializedEGraph) -> int:
    """Return the length of the longest chain of classes in the greedy choice."""
    problem = egraph.problem
    choice = extract(problem, ExtractionOptions("greedy")).choice
    depth = [0] * problem.n_classes
    for klass in topological_order(problem, choice):
        below = problem.children(int(choice[klass])).tolist()
        depth[klass] = 1 + max((depth[child] for child in below), default=0)
    return max(depth)


@pytest.mark.parametrize("shape", SHAPES)
def test_files_have_their_size_and_shape(shape: str, tmp_path: Path) -> None:
    write_egraph(tmp_path / "egraph.json", shape, 2000)
    egraph = read_egraph_json(tmp_path / "egraph.json")
    egraph.check_derivable("egraph.json")
    problem = egraph.problem
    assert len(egraph.nodes) == 2000
    assert len(egraph.classes) == 800
    owners = problem.node_class[edge_owner(problem.child_ptr)]
    assert np.any(problem.child_idx > owners)  # upwards: a cycle
    assert 0 < np.count_nonzero(problem.cost_us == 0) < 800
    assert (layers(egraph) > 60) == (shape == "deep")


def test_the_same_file_every_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_egraph(tmp_path / name, "deep", 100)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(big_command, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(big_command, "_in_a_process", big_command.measure_here)
    argv = ["big", "--models", "--e-nodes", "300", "--folder", str(tmp_path), "--save"]
    assert main([*argv, "--json", "--extractors", "greedy", "greedy-dag"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["shape"], row["what"]) for row in rows] == [
        (shape, what) for shape in SHAPES for what in ("read", "greedy", "greedy-dag")
    ]
    for read, tree, dag in (rows[:3], rows[3:]):
        assert read["cost"] is None
        assert tree["cost"] >= dag["cost"] > 0
        assert read["peak_mib"] > 1
    (saved,) = (tmp_path / "results").glob("big-*.json")
    assert json.loads(saved.read_text())["rows"] == rows
    assert main([*argv, "--extractors"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("wide   read ")
    assert main([*argv, "--shapes", "wid"]) == 2
    assert "did you mean 'wide'" in capsys.readouterr().err


def test_a_process_of_its_own(tmp_path: Path) -> None:
    write_egraph(tmp_path / "egraph.json", "wide", 100)
    answer = big_command._in_a_process(tmp_path / "egraph.json", "greedy", 10.0)
    assert answer["cost"] > 0 and answer["peak_mib"] > 1


@pytest.mark.nightly
def test_large_models_are_optimized_in_processes_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {
        "encoder": Shape(1, 16, 2, 32, 4, 50, gated=False),
        "decoder": Shape(2, 16, 2, 32, 4, 50, gated=True),
    }
    monkeypatch.setattr(models, "MODELS", small)
    monkeypatch.setattr(big_command, "MODELS", small)
    argv = ["big", "--models", *small, "--shapes", "--folder", str(tmp_path), "--json"]
    assert main(argv) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    assert [(row["model"], row["what"]) for row in rows] == [
        (model, what) for model in small for what in ("onnxruntime", "optimize")
    ]
    assert all(row["cpu_s"] > 0 and row["peak_mib"] >= row["own_mib"] > 0 for row in rows)
    notes = [row["note"] for row in rows if row["what"] == "optimize"]
    # timing decides which of the two graphs is written
    assert all("verified" in note or "the original, unchanged" in note for note in notes)
    assert (tmp_path / "decoder.onnx.data").exists()
