"""The bench of whole runs, on a small model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.models import MODELS
from bench.runs import command as runs_command
from bench.runs.measure import PHASES, ProcessRun, measure_process
from relational_tensat.base.errors import NoSolutionError
from relational_tensat.formats import save_model
from tests.graphs import shared_matmuls


@pytest.fixture
def one_small_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Let the models be a small one under BERT's name; return the folder of results."""
    monkeypatch.setitem(MODELS, "bert", shared_matmuls)
    monkeypatch.setattr(runs_command, "RESULTS", tmp_path)
    return tmp_path


def test_a_run_is_measured_from_its_process_on_and_saved(
    one_small_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_command, "BERT_LIMIT_S", 600.0)
    assert main(["runs", "bert", "--cost", "tensat_t4", "--save"]) == 0
    assert "within their limits: 1 of 1" in capsys.readouterr().out
    (path,) = one_small_model.glob("runs-*-tensat_t4.json")
    document = json.loads(path.read_text())
    (run,) = document["runs"]
    assert document["settings"]["cost"] == "tensat_t4"
    assert {"date", "commit", "machine", "versions"} <= set(document)
    assert run["model"] == "bert"
    assert tuple(run["phases"]) == PHASES
    assert sum(run["phases"].values()) == pytest.approx(run["wall_s"])
    assert run["phases"]["start"] > 0
    assert run["cpu_s"] > 0
    assert run["peak_bytes"] > 1 << 20
    assert 0 < run["database_s"] < run["wall_s"]
    assert run["cost_after_us"] < run["cost_before_us"]
    assert run["comparisons"] > 0


def measured(wall_s: float) -> ProcessRun:
    phases = dict.fromkeys(PHASES, 1.0)
    return ProcessRun(
        "bert",
        3.0,
        wall_s,
        2.0,
        1 << 28,
        phases,
        0.5,
        40,
        100,
        3,
        "saturated",
        4.0,
        3.0,
        0.0,
        2,
        0.0,
    )


def test_too_long_a_run_is_exit_code_4(
    one_small_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    walls = iter((5.0, 3.5, 4.0))
    monkeypatch.setattr(runs_command, "measure_process", lambda *_: measured(next(walls)))
    assert main(["runs", "bert", "--repeat", "3"]) == 4
    out = capsys.readouterr().out
    assert "3.50!" in out
    assert "too long: bert" in out
    assert measured(3.0).in_time
    assert not replace(measured(3.0), limit_s=2.9).in_time


def test_each_model_has_its_limit(
    one_small_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = {}

    def measure(name: str, path: Path, limit_s: float, flags: tuple[str, ...]) -> ProcessRun:
        limits[path.name] = limit_s
        return measured(1.0)

    monkeypatch.setattr(runs_command, "measure_process", measure)
    assert main(["runs", "bert", "vgg19", "light_vgg19"]) == 0
    assert limits == {"bert.json": 3.0, "vgg19.json": 15.0, "light_vgg19.onnx": 20.0}
    assert main(["runs", "brt"]) == 2
    assert "bert" in capsys.readouterr().err


def test_a_run_that_fails_says_why(tmp_path: Path) -> None:
    save_model(shared_matmuls(), tmp_path / "m.json")
    with pytest.raises(NoSolutionError, match=r"m: exit code 2: .*--iterations"):
        measure_process("m", tmp_path / "m.json", 1.0, ("--iterations", "-1"))
