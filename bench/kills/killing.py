"""Runs of one model that are killed, resumed, and held to what a run that nobody disturbed came to."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from bench.kills.forker import Forker
from bench.kills.tables import dump_file

#: Where a kill can meet a run, in order.
PLACES = ("loading", "creating", "exploring", "afterwards")
#: What a resumed run reports as the whole one does.
_SAME = ("cost_before_us", "cost_after_us", "e_nodes", "e_classes", "iterations", "stop_reason")
NOT_STARTED = "the run was killed before exploration had begun: start it again"
REFUSED = 3


@dataclass(frozen=True, slots=True)
class Survival:
    """What became of a run that was killed.

    Attributes:
        place: where it was killed, one of ``PLACES``.
        iterations: how many complete iterations its database had.
        trouble: what is not as after a whole run; "" where all is.
    """

    place: str
    iterations: int = 0
    trouble: str = ""


class KilledRuns:
    """Runs of one model, each in a folder of its own.

    Args:
        model: the model's file.
        flags: of every run, beside its database and output.
    """

    def __init__(self, forker: Forker, folder: Path, model: Path, flags: Sequence[object]) -> None:
        self._forker = forker
        self._folder = folder
        self._model = model
        self._flags = [*flags, "--json", "--json-events", "--force"]
        whole = self.folder("whole")
        seconds = []
        for _ in range(2):  # the first one fills the caches of the operating system
            started = time.monotonic()
            if forker.run(self.argv(whole), whole / "printed") != 0:
                raise RuntimeError((whole / "printed").read_text())
            seconds.append(time.monotonic() - started)
        self.seconds = min(seconds)
        self.result = _result(whole / "printed")
        self._tables = dump_file(whole / "run.duckdb")
        self._output = self._output_of(whole).read_bytes()

    def folder(self, name: str) -> Path:
        """Return a new folder."""
        folder = self._folder / name
        folder.mkdir()
        return folder

    def argv(self, folder: Path) -> list[object]:
        """Return the arguments of a run in a folder."""
        places = ["--db", folder / "run.duckdb", "-o", self._output_of(folder)]
        return ["run", self._model, *places, *self._flags]

    def kill(self, folder: Path, fraction: float) -> None:
        """Start a run and kill it after that part of the time that a whole run takes."""
        self._kill(self.argv(folder), folder, fraction, starts=True)

    def kill_resumed(self, folder: Path, fraction: float) -> None:
        """Resume a run and kill it after that part of the time that a whole run takes."""
        argv = [*self._resuming(folder), "--json-events"]
        self._kill(argv, folder, fraction, starts=False)

    def resumed(self, folder: Path) -> Survival:
        """Resume a killed run; compare its tables, its file and its report with the whole run's."""
        database = folder / "run.duckdb"
        reported_count = _reported_iterations(folder / "killed")
        if not database.exists():
            return Survival("loading", trouble="no database" * (reported_count > 0))
        stored_log = stored_iterations(database)
        argv = [*self._resuming(folder), "--json", "--quiet"]
        code = self._forker.run(argv, folder / "printed")
        printed = (folder / "printed").read_text().splitlines()
        if code == REFUSED and len(printed) == 1 and printed[0].endswith(NOT_STARTED):
            return Survival("creating", trouble="iterations are lost" * (reported_count > 0))
        if code != 0 or stored_log is None:
            return Survival("exploring", trouble=f"exit {code}: {' '.join(printed[-1:])}")
        resumed = _result(folder / "printed")
        wrong = [key for key in _SAME if resumed[key] != self.result[key]]
        if stored_log != self._tables["iteration_log"][: len(stored_log)]:
            wrong.append("iterations before the kill")
        if not reported_count <= len(stored_log) == resumed["resumed_after"]:
            wrong.append("iterations that were reported")
        if dump_file(database) != self._tables:
            wrong.append("tables")
        if self._output_of(folder).read_bytes() != self._output:
            wrong.append("output")
        is_exploring = resumed["resumed_after"] < resumed["iterations"]
        place = "exploring" if is_exploring else "afterwards"
        return Survival(place, len(stored_log), ", ".join(wrong))

    def _kill(self, argv: list[object], folder: Path, fraction: float, *, starts: bool) -> None:
        delay_s = fraction * self.seconds
        while not self._forker.kill_after(delay_s, argv, folder / "killed"):
            delay_s /= 2  # it was done already: it had more of the machine than the first runs
            if starts:
                shutil.rmtree(folder)
                folder.mkdir()

    def _resuming(self, folder: Path) -> list[object]:
        return ["run", "--resume", folder / "run.duckdb", "-o", self._output_of(folder)]

    def _output_of(self, folder: Path) -> Path:
        return folder / f"out{self._model.suffix}"


def stored_iterations(database: Path) -> list[tuple[Any, ...]] | None:
    """Return the complete iterations that a killed run's database holds; None if nothing is in it."""
    try:
        return dump_file(database)["iteration_log"]
    except (duckdb.Error, KeyError):
        return None


def _result(printed: Path) -> dict[str, Any]:
    """Return the object that a run has printed last."""
    content: dict[str, Any] = json.loads(printed.read_text().splitlines()[-1])
    return content


def _reported_iterations(printed: Path) -> int:
    """Return how many iterations a run has reported as complete."""
    lines = printed.read_text().split("\n")[:-1]  # the last line may be half a line
    return sum(json.loads(line)["event"] == "iteration" for line in lines)
