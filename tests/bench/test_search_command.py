"""``python -m bench search`` on a small model."""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.search import command as search_command
from bench.search.search_run import SearchRun


def test_focus_costs_no_more_than_saturation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "vgg19", "--k", "1", "--node-limits", "500"]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    saturation, focus = rows
    assert (saturation[1], focus[1]) == ("saturation", "focus")
    assert saturation[5] == "0"
    assert saturation[11] == saturation[10]  # it has no graph before it ends
    assert saturation[15] == saturation[7]  # after 60 s, what it found
    assert int(focus[5]) > 1
    assert float(focus[7]) <= float(saturation[7])


def test_equal_cpu_seconds_end_every_search(capsys: pytest.CaptureFixture[str]) -> None:
    searches = ["--searches", "saturation,focus,mcts,backtracking"]
    searches += ["--k", "1", "--node-limits", "500", "--cpu-seconds", "0"]
    assert main(["search", "nasrnn", *searches]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [row[1] for row in rows] == ["saturation", "focus", "mcts", "backtracking"]
    assert {row[-1] for row in rows[1:]} == {"time"}
    assert all(float(row[7]) <= float(row[6]) for row in rows)


def test_an_unknown_model_is_refused_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", "vgg20"]) == 2
    assert "did you mean 'vgg19'" in capsys.readouterr().err


def test_results_are_kept_with_their_circumstances(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    options = argparse.Namespace(rules="taso", k="1", node_limits="400", out=None)
    run = SearchRun("m", "focus", 1, 400, 5, 3, 9, "focus", 9.0, 8.0, 8.0, 1.0, 1.0, 0.5, 1.0)
    path = search_command.save([run], options, tmp_path)
    assert path.name == f"search-{date.today().isoformat()}-taso.json"
    document = json.loads(path.read_text())
    assert document["runs"][0]["worlds"] == 3
    assert document["settings"]["node_limits"] == "400"
    assert path.with_suffix(".csv").read_text().splitlines()[1].startswith("m,focus,1,400,")
    assert "| m | focus | 1 | 400 |" in path.with_suffix(".md").read_text()


def test_what_is_kept_is_not_run_again_and_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="the bench extra is not installed")
    monkeypatch.setattr(search_command, "RESULTS", tmp_path / "results")
    argv = ["search", "vgg19", "--searches", "saturation,backtracking", "--k", "1,2"]
    argv += [
        "--node-limits",
        "300",
        "--time-limit",
        "0.2",
        "--out",
        str(tmp_path / "runs"),
        "--save",
    ]
    assert main(argv) == 0
    first = capsys.readouterr()
    assert main(argv) == 0
    again = capsys.readouterr()
    assert first.out == again.out
    assert "3 of 3 cells kept from before" in again.err
    (picture,) = (tmp_path / "results").glob("search-*-shipped-runs.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*argv, "--total-limit", "0", "--out", str(tmp_path / "none")]) == 0
    assert "3 of 3 runs are missing" in capsys.readouterr().err
