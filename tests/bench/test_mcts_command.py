"""``python -m bench mcts`` on a small model."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.mcts import command as mcts_command
from bench.mcts import paper_figures
from bench.mcts.results import COMBINATIONS
from bench.models import MODELS


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_papers_tables_and_figures_are_written_and_runs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(mcts_command, "RESULTS", tmp_path)
    settings = [
        "--costs",
        "tensat_t4",
        "--mains",
        "moves,greedy",
        "--seeds",
        "1",
        "--node-limit",
        "200",
    ]
    argv = ["mcts", "vgg19", *settings, "--out", str(tmp_path / "runs"), "--save"]
    assert main(argv) == 0
    assert "4/4 mcts-vgg19-tensat_t4-greedy-seed0" in capsys.readouterr().err
    folder = tmp_path / f"mcts-{date.today().isoformat()}-taso-sound"
    assert {path.name for path in folder.glob("*.png")} == {
        "average-tensat_t4.png", "decisions-tensat_t4.png", "goals-tensat_t4.png", "rules-tensat_t4.png",
    }  # fmt: skip
    (goal,) = rows_of(folder / "goals-tensat_t4.csv")
    assert (
        float(goal["all subgraphs µs"])
        <= float(goal["real subgraph µs"])
        <= float(goal["saturation µs"])
    )
    rows = rows_of(folder / "table4.csv")
    assert [(row["approach"], row["main"], row["final"]) for row in rows] == [
        (c.approach.upper(), c.main, c.final)
        for c in COMBINATIONS
        if c.main not in ("ocf", "greedy-dag", "ilp")
    ]
    runs = json.loads((folder / "runs.json").read_text())["runs"]
    assert all(run["costs_us"]["ilp"] <= run["before_us"] * (1 + 1e-9) for run in runs)
    assert {"commit", "load_average", "join_ms"} <= set(runs[0])
    assert main(argv) == 0  # nothing is run again
    assert "4 of 4 cells kept from before" in capsys.readouterr().err
    kept = ["--out", str(tmp_path / "others"), "--kept", str(folder), "--total-limit", "0"]
    assert main([*argv[:-1], *kept, "--time-limit", "1e-6"]) == 0
    assert "1 runs taken from" in capsys.readouterr().err  # what was not searched
    assert main([*argv[:-1], *kept]) == 0
    assert "4 of 4 cells kept from before" in capsys.readouterr().err
    assert main([*argv[:-1], *kept, "--node-limit", "300"]) == 2
    assert "made with --node-limit 200; expected 300" in capsys.readouterr().err
    assert main([*argv[:-1], *kept, "--kept", str(tmp_path)]) == 3
    assert "no runs.json; expected a folder that bench mcts --save wrote" in capsys.readouterr().err


def test_rollouts_are_counted_in_an_empty_and_in_a_full_universe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(mcts_command, "RESULTS", tmp_path)
    assert main(["mcts", "vgg19", "--subgraphs", "1,4", "--save"]) == 0
    _, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert [(row[1], row[2]) for row in rows] == [
        ("1", "cold"), ("1", "warm"), ("4", "cold"), ("4", "warm"),
    ]  # fmt: skip
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".csv", ".md"}


def test_the_paper_has_all_models() -> None:
    assert all(paper_figures.planning_s(model) > 0 for model in MODELS)
    assert set(paper_figures.initial("a100")) == set(MODELS)
    for cost, n_models in (("a100", 13), ("tensat_t4", 9)):
        of_the_paper = [c for c in COMBINATIONS if c.main not in ("moves", "greedy-dag")]
        assert len(paper_figures.searches(cost)) == n_models * len(of_the_paper)
