"""Many models: each once, whatever ends, and one ledger."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from relational_tensat import InputError, Options, UsageError
from relational_tensat.base.runner import Here
from relational_tensat.cli.main import main
from relational_tensat.fleet import Beside, FleetRow, Ledger, fleet
from relational_tensat.fleet import fleet as module_of_fleet
from relational_tensat.fleet.task import Files, FleetTask, carry_out, versions

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
INPUTS = Path(__file__).resolve().parents[2] / "bench" / "inputs"
_QUICK = Options.of(effort="low", search="saturation", iterations=1, node_limit=500, verify_runs=1)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Return a folder with two models, one of them in a folder below, and one that is none."""
    folder = tmp_path / "models"
    (folder / "deep").mkdir(parents=True)
    shutil.copy(INPUTS / "gated_mlp.onnx", folder / "one.onnx")
    shutil.copy(INPUTS / "gated_mlp.onnx", folder / "deep" / "two.onnx")
    (folder / "broken.onnx").write_bytes(b"no model")
    (folder / "notes.txt").write_text("no model either")
    return folder


def states(rows: list[FleetRow]) -> dict[str, str]:
    return {row.model: row.state for row in rows}


def test_what_a_backend_does_by_itself_saves_nothing(models: Path, tmp_path: Path) -> None:
    options = Options.of(deterministic=True, cost="analytic:cpu", backend="onnxruntime")
    (row,) = fleet([models / "one.onnx"], tmp_path / "fast", options, beside=Beside(savings=True))
    used = {name for name, _ in row.rules}
    assert row.state == "changed", row.reason
    assert "ort-rms-norm-by-quotient" in used - {name for name, _ in row.savings}


def test_each_model_is_optimized_once(models: Path, tmp_path: Path) -> None:
    out, noted = tmp_path / "fast", list[str]()
    run = partial(fleet, [models], out, _QUICK, noted=lambda row: noted.append(row.model))
    rows = run()
    assert set(states(rows)) == {"one.onnx", "deep/two.onnx", "broken.onnx"}
    assert states(rows)["broken.onnx"] == "refused"
    assert (out / "deep" / "two.onnx").read_bytes() == (out / "one.onnx").read_bytes()
    assert sorted(noted) == ["broken.onnx", "deep/two.onnx", "one.onnx"]
    assert states(run()) == states(rows)
    assert len(noted) == 3
    (out / "one.onnx").unlink()
    with (models / "broken.onnx").open("ab") as file:
        file.write(b"!")
    run()
    assert sorted(noted[3:]) == ["broken.onnx", "one.onnx"]
    fleet([models], out, _QUICK.replace(node_limit=501), noted=lambda row: noted.append(row.model))
    assert len(noted) == 8


def test_rows_say_what_became_of_models(models: Path, tmp_path: Path) -> None:
    (row,) = fleet([models / "one.onnx"], tmp_path / "fast", _QUICK)
    (kept,) = Ledger(tmp_path / "fast").rows()
    assert kept == row
    assert row.cost_before_us and row.cost_after_us and row.cost_after_us <= row.cost_before_us
    assert row.basis == "modelled" and row.report and row.peak_bytes > 1 << 20


def test_each_result_may_have_a_certificate(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "fast"
    rows = fleet([models], out, _QUICK, beside=Beside(certificates=True))
    assert states(rows)["broken.onnx"] == "refused"
    for name in ("one", "deep/two"):
        files = [models / f"{name}.onnx", out / f"{name}.onnx", out / f"{name}.proof.json"]
        assert main(["check", *map(str, files), "-q"]) == 0


def _killing(task: FleetTask, marks: Path) -> tuple[FleetRow, Files]:
    """Carry a task out; the process of ``one.onnx`` is killed as often as there are marks."""
    left = sorted(marks.iterdir())
    if task.model == "one.onnx" and left:
        left[0].unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return carry_out(task)


@pytest.mark.parametrize(
    ("kills", "state", "on"), [(1, None, "processes:2"), (9, "lost", "processes:1")]
)
def test_a_process_that_is_killed_loses_no_other_model(
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kills: int,
    state: str | None,
    on: str,
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    for number in range(kills):
        (marks / str(number)).touch()
    (models / "one.onnx").write_bytes(
        (models / "one.onnx").read_bytes() + b"\x72\x00"
    )  # the largest
    import importlib

    module = importlib.import_module("relational_tensat.fleet.fleet")
    monkeypatch.setattr(module, "carry_out", partial(_killing, marks=marks))
    rows = fleet([models], tmp_path / "fast", _QUICK, on=on)
    found = states(rows)
    assert found["broken.onnx"] == "refused"
    assert found["deep/two.onnx"] in ("changed", "kept")
    assert found["one.onnx"] == state or (
        state is None and found["one.onnx"] in ("changed", "kept")
    )
    assert len(Ledger(tmp_path / "fast").rows()) == 3


def test_what_cannot_be_is_one_line(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "fast"
    with pytest.raises(UsageError, match=r"--on processes:2: .* expected --effort low"):
        fleet([models], out, on="processes:2")
    with pytest.raises(UsageError, match="no such file or folder"):
        fleet([models / "absent*.onnx"], out, _QUICK)
    with pytest.raises(UsageError, match=r"both results would be 'one\.onnx'"):
        other = tmp_path / "other"
        other.mkdir()
        shutil.copy(models / "one.onnx", other / "one.onnx")
        fleet([models, other], out, _QUICK)
    with pytest.raises(UsageError, match="would be written over"):
        fleet([models], models, _QUICK)
    with pytest.raises(UsageError, match=r"unknown runner 'proceses'"):
        fleet([models / "one.onnx"], out, _QUICK, on="proceses:2")
    (out / "fleet.duckdb").write_text("no database")
    with pytest.raises(InputError, match="the ledger cannot be"):
        fleet([models], out, _QUICK)


def test_the_command_prints_a_line_a_model_and_goes_on(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "fast")
    line = ["fleet", f"{models}/*.onnx", "-o", out, "--effort", "low", "--search", "saturation"]
    assert main(line) == 0
    plan, *first = capsys.readouterr().out.splitlines()
    assert plan == "2 models to optimize, 1 at a time"
    assert first[-1].startswith("2 models: ") and "1 refused" in first[-1]
    assert main(line) == 0
    assert capsys.readouterr().out.splitlines() == [f"{first[-1]}; 2 of them done before"]
    assert main(["fleet", "status", out]) == 0
    assert set(capsys.readouterr().out.splitlines()) == set(first)
    assert main(["sql", f"{out}/fleet.duckdb", "SELECT count(*) AS n FROM fleet_run", "--csv"]) == 0
    assert capsys.readouterr().out == "n\n2\n"
    assert main(["fleet", "status", str(models)]) == 3
    assert "has no fleet.duckdb" in capsys.readouterr().err
    assert main([*line, "--db", "x.duckdb"]) == 2
    assert "--db is for one model" in capsys.readouterr().err


def test_the_module_is_not_the_function() -> None:
    assert callable(module_of_fleet)


def test_a_name_is_one_line(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name with a line break does not forge a line of another model."""
    for path in models.rglob("*.onnx"):
        path.unlink()
    (models / "a\nb: changed\x1b[2J.onnx").write_bytes(b"no model")
    assert main(["fleet", str(models), "-o", str(tmp_path / "fast"), "--on", "here"]) == 0
    _, first, _ = capsys.readouterr().out.splitlines()
    assert first.startswith(r"a\x0ab: changed\x1b[2J.onnx: refused: ")


def test_no_file_of_others_is_written_over(models: Path, tmp_path: Path) -> None:
    out = tmp_path / "fast"
    out.mkdir()
    (out / "one.onnx").write_text("precious")
    with pytest.raises(UsageError, match=r"one.onnx: exists already, and no fleet wrote it here"):
        fleet([models], out, _QUICK)
    assert (out / "one.onnx").read_text() == "precious"
    os.mkfifo(out / "fleet.duckdb")
    with pytest.raises(InputError, match=r"fleet\.duckdb: is a device or a pipe"):
        fleet([models], out, _QUICK)


class QuietPlace(Here):
    """A cluster with four cores for searches, and one that is quiet."""

    slots = 4
    quiet = 0

    def submit_quiet(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        QuietPlace.quiet += 1
        return self.submit(compute, task, memory_bytes)


@pytest.mark.parametrize(("options", "is_timed"), [(Options(), True), (_QUICK, False)])
def test_models_that_are_timed_have_a_quiet_core_each(
    models: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: Options,
    is_timed: bool,
) -> None:
    def refused(task: FleetTask) -> tuple[FleetRow, Files]:
        row = FleetRow(
            task.model,
            task.model_digest,
            task.options_digest,
            versions(),
            "refused",
            "it is a test",
        )
        return row, ()

    module = importlib.import_module("relational_tensat.fleet.fleet")
    monkeypatch.setattr(module, "runner", lambda on: QuietPlace())
    monkeypatch.setattr(module, "carry_out", refused)
    QuietPlace.quiet = 0
    rows = fleet([models], tmp_path / "fast", options, on="ray")
    assert len(rows) == 3
    assert QuietPlace.quiet == (3 if is_timed else 0)
