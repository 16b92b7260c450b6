from __future__ import annotations

import importlib.util
import json
from datetime import date
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.common import plots
from bench.paper import command as paper_command
from bench.paper import runs
from bench.paper.cells import Cell
from bench.paper.runs import Result, Settings
from relational_tensat.base.errors import MissingDependencyError
from tests.bench.paper.made_up import result

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(cell: Cell, settings: Settings) -> Result:
        return result(cell)

    monkeypatch.setattr(runs, "run_cell", run)
    monkeypatch.setattr(paper_command, "RESULTS", tmp_path / "results")


def test_writes_every_table_and_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert (
        main(
            [
                "paper",
                "--out",
                str(out),
                "--models",
                "bert,vgg19",
                "--jobs",
                "1",
                "--save",
            ]
        )
        == 0
    )
    printed = capsys.readouterr().out
    names = {"table1", "sequential", "table3", "table4", "table5", "table6", "figure6", "figure7"}
    plotted = {"table1.png", "figure6.png", "figure7.png"}
    files = {f"{name}.csv" for name in names} | plotted | {"paper.md", "runs.json"}
    saved = tmp_path / "results" / f"paper-{date.today().isoformat()}"
    assert {path.name for path in saved.iterdir()} == files
    assert {path.name for path in out.iterdir()} == files | {"cells"}
    assert printed.strip() == (out / "paper.md").read_text().strip()
    for name in plotted:
        assert (out / name).read_bytes().startswith(b"\x89PNG")
        assert f"]({name})" in printed
    kept = json.loads((out / "runs.json").read_text())
    assert {"date", "commit", "machine", "versions", "load_average", "settings", "runs"} == set(
        kept
    )
    assert len(kept["runs"]) == len(list((out / "cells").iterdir()))


def test_one_model_and_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for table in ("3", "figure6"):
        out = tmp_path / table
        assert (
            main(
                ["paper", "--out", str(out), "--models", "vgg19", "--tables", table, "--jobs", "1"]
            )
            == 0
        )
        capsys.readouterr()
        assert (out / "paper.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tables", "figure8"], "unknown table 'figure8'"),
        (["--models", "brt"], "did you mean 'bert'"),
        (["--time-limit", "0"], "--time-limit 0.0, expected a number above 0"),
        (["--total-limit", "0"], "--total-limit 0.0, expected a number above 0"),
        (["--jobs", "-1"], "--jobs -1, expected a number above 0"),
    ],
)
def test_bad_arguments_are_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", "--out", str(tmp_path / "out"), *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_says_what_is_missing_before_anything_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="matplotlib"):
        plots.check_plotting()
