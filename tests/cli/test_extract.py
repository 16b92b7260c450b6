"""``extract FILE`` as a user runs it: another tool's file, one JSON object on stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def egraph(tmp_path: Path) -> Path:
    """Two consumers, each with a part of its own or one that both may share; and a cycle."""
    nodes = {
        "root": {"op": "pair", "children": ["a1", "b1"], "eclass": "root", "cost": 0},
        "a1": {"op": "own", "children": [], "eclass": "a", "cost": 4},
        "a2": {"op": "half", "children": ["shared"], "eclass": "a", "cost": 1},
        "b1": {"op": "own", "children": [], "eclass": "b", "cost": 4.5},
        "b2": {"op": "half", "children": ["shared"], "eclass": "b", "cost": 0},
        "b3": {"op": "again", "children": ["root"], "eclass": "b", "cost": 0},
        "shared": {"op": "both", "children": [], "eclass": "s", "cost": 5},
    }
    file = tmp_path / "pair.json"
    file.write_text(json.dumps({"nodes": nodes, "root_eclasses": ["root"]}))
    return file


def extracted(*argv: object) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "relational_tensat", "extract", *map(str, argv), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return report


def test_json_says_what_was_found(egraph: Path) -> None:
    report = extracted(egraph, "--extract-time-limit", 30)
    assert {"cost", "bound", "gap", "optimal", "seconds", "reductions", "method"} <= set(report)
    assert report["cost"] == report["bound"] == 6.0
    assert (report["gap"], report["optimal"], report["method"]) == (0.0, True, "ilp")
    assert isinstance(report["seconds"], float) and 0 < report["seconds"] < 30
    reductions = report["reductions"]
    assert isinstance(reductions, dict)
    assert reductions["before"] == {"e_nodes": 7, "e_classes": 4, "edges": 5}
    assert reductions["after"]["e_nodes"] < 7
    assert sum(reductions["dropped"].values()) > 0


def test_a_greedy_answer_is_no_proof(egraph: Path) -> None:
    report = extracted(egraph, "--extractor", "greedy")
    assert (report["cost"], report["optimal"], report["method"]) == (8.5, False, "greedy")
    assert report["bound"] == 0.0
    assert report["gap"] == 1.0
