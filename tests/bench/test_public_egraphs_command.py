"""``python -m bench public-egraphs`` on small files: what is kept, resumed and printed."""

from __future__ import annotations

import gzip
import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.public_egraphs import command
from bench.public_egraphs.families import COUNT, generated, generated_names
from bench.public_egraphs.report import contradictions
from bench.public_egraphs.solvers import Solved, solve
from relational_tensat.extract.interchange import read_egraph_json

HAS_CP_SAT = importlib.util.find_spec("ortools") is not None


def folder_with(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    (folder / "below").mkdir(parents=True)
    (folder / "sums.json").write_text(json.dumps(generated("sums-01")))
    loop = {"nodes": {"a": {"op": "a", "children": ["a"], "eclass": "A"}}, "root_eclasses": ["A"]}
    (folder / "below" / "loop.json.gz").write_bytes(gzip.compress(json.dumps(loop).encode()))
    missing = {**loop, "root_eclasses": ["Z"]}
    (folder / "below" / "missing.json").write_text(json.dumps(missing))
    return folder


@pytest.mark.nightly
def test_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, kept = folder_with(tmp_path), tmp_path / "kept.jsonl"
    started: list[str] = []

    def solved_here(file: Path, method: str, limit_s: float) -> Solved:
        started.append(f"{file.name} {method}")
        return solve(file, method, limit_s)

    monkeypatch.setattr(command, "solve_apart", solved_here)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    argv = ["public-egraphs", str(folder), "--kept", str(kept), "--methods", "ours", "highs"]
    assert main([*argv, "--time-limit", "20", "--save"]) == 0
    printed = capsys.readouterr().out
    assert "| ours | 3 | 1 | 1 | 0.0% | 2 |" in printed
    assert "| highs | 3 | 1 | 1 | 0.0% | 2 |" in printed
    assert "below/loop | 0 | 0 | ours | not derivable | - |" in printed
    assert "below/missing | 0 | 0 | ours | unreadable | - |" in printed
    assert len(started) == 6
    (saved,) = tmp_path.glob("public-egraphs-*.md")
    assert saved.name.startswith(f"public-egraphs-{folder.name}-")
    assert saved.name.endswith("-20s-ours-highs.md")
    assert printed.strip() in saved.read_text() and "20 CPU seconds" in saved.read_text()

    # What was cut off when the process was killed is done again, and nothing else.
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join([*lines[:-1], lines[-1][:40]]) + "\n")
    assert main([*argv, "--time-limit", "20"]) == 0
    assert len(started) == 7
    assert main([*argv, "--time-limit", "21", "--limit", "1"]) == 0
    assert len(started) == 9

    monkeypatch.setattr(command, "solve_apart", lambda *task: Solved("done", note=str(task)))
    assert main([*argv, "--time-limit", "22", "--jobs", "2"]) == 0
    added = [json.loads(line) for line in kept.read_text().splitlines()[-6:]]
    assert {(line["file"], line["method"]) for line in added} == {
        (file, method)
        for file in ("sums", "below/loop", "below/missing")
        for method in ("ours", "highs")
    }
    assert all(repr(line["method"]) in line["note"] for line in added)


def test_bad_input_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["public-egraphs", str(tmp_path)]) == 3
    assert "expected a folder with e-graph files" in capsys.readouterr().err
    assert main(["public-egraphs", str(tmp_path), "--time-limit", "0"]) == 2
    assert main(["public-egraphs", str(tmp_path), "--jobs", "0"]) == 2
    kept = tmp_path / "kept.jsonl"
    kept.write_text("{}\n")
    assert main(["public-egraphs", str(folder_with(tmp_path)), "--kept", str(kept)]) == 3
    assert "kept.jsonl:1: expected an answer of this bench" in capsys.readouterr().err


def test_generated_ones_are_always_the_same_and_can_be_read(tmp_path: Path) -> None:
    names = generated_names()
    assert len(set(names)) == COUNT and generated("tensors-01") == generated("tensors-01")
    for name in names[:12]:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(generated(name)))
        read_egraph_json(path).check_derivable(name)


@pytest.mark.skipif(not HAS_CP_SAT, reason="OR-Tools is not installed")
def test_cp_sat_in_a_process_of_its_own_agrees_with_ours(tmp_path: Path) -> None:
    path = tmp_path / "logic.json"
    path.write_text(json.dumps(generated("logic-01")))
    ours = solve(path, "ours", 20.0)
    theirs = command.solve_apart(path, "cp-sat", 20.0)
    assert (theirs.status, theirs.cost) == ("optimal", pytest.approx(ours.cost)), theirs
    assert ours.status == "optimal"


def test_contradictions_are_named() -> None:
    good = Solved("optimal", cost=5.0, bound=5.0)
    assert contradictions({"f": {"a": good, "b": good}}) == []
    (line,) = contradictions({"f": {"a": replace(good, bound=6.0, cost=6.0), "b": good}})
    assert line == "f: a bounds by 6 what b has at 5"
