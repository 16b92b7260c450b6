"""What ends in the middle: processes, machines, memory, Ctrl-C, the fleet itself."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relational_tensat import InputError, UsageError
from relational_tensat.base.runner import (
    RUNNERS,
    LostError,
    Runner,
    TooLittleMemoryError,
    runner,
)
from relational_tensat.base.watch import Watch
from relational_tensat.fleet import FleetRow, Ledger, fleet
from relational_tensat.fleet.task import FAILED, Files, FleetTask, _ended_softly, carry_out
from tests.fleet.small_models import QUICK, write_models

_MODULE = importlib.import_module("relational_tensat.fleet.fleet")


class Ending(Runner):
    """Computes here; what the test says ends before it is done."""

    def __init__(self, errors: Sequence[Exception]) -> None:
        self._errors = list(errors)
        self.asked: list[tuple[str, int]] = []

    def submit(
        self, compute: Callable[[Any], Any], task: Any, memory_bytes: int = 0
    ) -> Future[Any]:
        self.asked.append((task.model, memory_bytes))
        future: Future[Any] = Future()
        if task.model == "chain001.json" and self._errors:
            future.set_exception(self._errors.pop(0))
        else:
            future.set_result(compute(task))
        return future


@pytest.mark.parametrize(
    ("errors", "state", "memory"),
    [
        ([LostError("ended")] * 2, "changed", [1, 1, 1]),
        ([LostError("ended")] * 3, "lost", [1, 1, 1]),
        ([TooLittleMemoryError("too little")], "changed", [1, 2]),
        ([TooLittleMemoryError("too little")] * 2, "lost", [1, 2]),
    ],
)
def test_what_ends_is_tried_again_elsewhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    errors: list[Exception],
    state: str,
    memory: list[int],
) -> None:
    place = Ending(errors)
    monkeypatch.setitem(RUNNERS, "ending", lambda _: place)
    models = write_models(tmp_path / "models", 3)
    rows = {row.model: row for row in fleet(models, tmp_path / "out", QUICK, on="ending")}
    assert [row.state for row in rows.values()] == ["changed", state, "changed"]
    asked = [amount for model, amount in place.asked if model == "chain001.json"]
    assert [amount // asked[0] for amount in asked] == memory
    assert rows["chain001.json"].attempts == len(memory)
    ledger = Ledger(tmp_path / "out")
    assert len(ledger.rows()) == 3
    ends = [end for model, end in ledger.table("fleet_attempt", "model, ending") if "1" in model]
    assert len(ends) == len(memory) and ends[-1] == state


def test_a_defect_and_another_version_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = write_models(tmp_path / "models", 1)
    with monkeypatch.context() as patch:
        patch.setattr("relational_tensat.fleet.task.optimize", lambda *_, **__: 1 / 0)
        (row,) = fleet(models, tmp_path / "out", QUICK)
    assert (row.state, row.reason) == (FAILED, "ZeroDivisionError: division by zero")
    other = lambda task: (replace(row, version="0.0", host="far"), ())  # noqa: E731
    monkeypatch.setattr(_MODULE, "carry_out", other)
    with pytest.raises(UsageError, match=r"far: has 0\.0, expected .* as here"):
        fleet(models, tmp_path / "other", QUICK)


def _pressed(task: FleetTask, times: int) -> tuple[FleetRow, Files]:
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
    return carry_out(task)


def test_ctrl_c_ends_softly_and_a_second_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models, out = write_models(tmp_path / "models", 3), tmp_path / "out"
    for times, landed in ((2, 0), (1, 1)):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(_MODULE, "carry_out", lambda task, n=times: _pressed(task, n))
            fleet(models, out, QUICK)
        assert len(Ledger(out).rows()) == landed
    begun: list[str] = []
    rows = fleet(models, out, QUICK, begun=lambda task: begun.append(task.model))
    assert [row.state for row in rows] == ["changed"] * 3
    assert len(begun) == 2


def test_a_run_elsewhere_takes_a_stop_as_its_own_ctrl_c() -> None:
    watch = Watch()
    with runner("here") as place, _ended_softly(), watch.watching():
        place.stop()
        give_up = time.monotonic() + 20
        while not watch.happened and time.monotonic() < give_up:
            time.sleep(0.01)
    assert watch.happened and not watch.insisted


def test_what_was_cut_short_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file is the best so far; the same command searches on."""
    models, out = write_models(tmp_path / "models", 2), tmp_path / "out"

    def cut_short(task: FleetTask) -> tuple[FleetRow, Files]:
        row, files = carry_out(task)
        return replace(row, reason="interrupted"), files

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_MODULE, "carry_out", cut_short)
        fleet(models, out, QUICK)
    (row,) = Ledger(out).rows()
    assert row.reason == "interrupted" and (out / row.model).exists()
    assert [each.reason for each in fleet(models, out, QUICK)] == ["", ""]


_KILLED = """
import os, signal, sys
import importlib
from tests.fleet.small_models import QUICK, write_models
from relational_tensat.fleet import fleet
from relational_tensat.fleet.task import carry_out
from pathlib import Path
module = importlib.import_module("relational_tensat.fleet.fleet")
out = Path(sys.argv[1])
def killed(task):
    result = carry_out(task)  # its file is there, its row is not
    print("written", flush=True)
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
    return result
module.carry_out = killed
fleet(write_models(out.parent / "models", 2), out, QUICK)
"""


def _begun(out: Path, how: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(out), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    return process


def test_a_fleet_that_is_killed_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with _begun(out, "kill") as process:
        assert process.wait() == -signal.SIGKILL
    assert [path.name for path in out.glob("*.json")] == ["chain001.json"]
    rows = fleet([tmp_path / "models/*.json"], out, QUICK)
    assert [row.state for row in rows] == ["changed", "changed"]
    assert [row.attempts for row in rows] == [1, 2]
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_the_tables_of_a_fleet_are_there_before_its_first_model_ends(tmp_path: Path) -> None:
    models, out = write_models(tmp_path / "models", 1), tmp_path / "out"
    with _begun(out, "wait") as process:  # its first model has no row yet
        assert Ledger(out).rows() == []
        assert len(Ledger(out).table("fleet_attempt", "model")) == 1
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
    assert {row.model for row in Ledger(out).rows()} >= {models[0].name}


def test_a_fleet_that_runs_is_read_from_its_tables_and_refuses_another(tmp_path: Path) -> None:
    models, out = write_models(tmp_path / "models", 1), tmp_path / "out"
    rows = fleet(models, out, QUICK)
    with _begun(out, "wait") as process:  # of two models
        assert Ledger(out).rows() == [replace(row, report=None) for row in rows]
        with pytest.raises(InputError, match=r"the ledger cannot be written: .*lock"):
            fleet([tmp_path / "models/*.json"], out, QUICK)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
    assert len(Ledger(out).rows()) == 2


def test_a_file_that_no_fleet_wrote_stays_and_other_ledgers_are_refused(tmp_path: Path) -> None:
    models, out = write_models(tmp_path / "models", 2), tmp_path / "out"
    fleet(models[:1], out, QUICK)
    (out / models[1].name).write_text("precious")
    with pytest.raises(UsageError, match=r"chain001\.json: exists already, and no fleet wrote it"):
        fleet(models, out, QUICK)
    assert (out / models[1].name).read_text() == "precious"
    ledger = out / "fleet.duckdb"
    content = ledger.read_bytes()
    other = bytearray(content)
    other[12:20] = (9999).to_bytes(8, "little")  # what says the version of DuckDB's files
    ledger.write_bytes(other)
    with pytest.raises(InputError, match=r"fleet\.duckdb: the ledger cannot be written: [^\n]*$"):
        fleet(models[:1], out, QUICK)
    with pytest.raises(InputError, match=r"fleet\.duckdb: the ledger cannot be read: [^\n]*$"):
        Ledger(out).rows()
    ledger.write_bytes(content)
    import duckdb

    with duckdb.connect(ledger) as connection:
        connection.execute("UPDATE fleet_format SET version = '1'")
    with pytest.raises(InputError, match="one of another version of this program"):
        fleet(models[:1], out, QUICK)
