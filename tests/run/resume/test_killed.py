"""Runs that are killed at any moment, by SIGKILL, and resumed."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from relational_tensat.formats import save_model
from tests.run.resume.forker import Forker, forking
from tests.run.resume.models import RULES, layers
from tests.run.resume.tables import dump_file

MOMENTS = 12
FLAGS = [
    *(arg for file in RULES for arg in ("--rules", file)),
    *("--iterations", 12, "--multi-iterations", 3, "--multi-schedule", "saturated"),
    *("--node-limit", 1500, "--extractor", "greedy", "--verify-runs", 1),
    *("--json", "--json-events", "--force"),
]


class Runs:
    """Runs of one model, each in a folder of its own."""

    def __init__(self, forker: Forker, folder: Path) -> None:
        self.forker = forker
        self.model = folder / "layers.json"
        save_model(layers(), self.model)
        self._folder = folder
        self.whole = self.folder("whole")
        seconds = []
        for _ in range(2):  # the first one fills the caches of the operating system
            started = time.monotonic()
            assert forker.run(self.argv(self.whole), self.whole / "printed") == 0
            seconds.append(time.monotonic() - started)
        self.seconds = min(seconds)
        self.result = result(self.whole / "printed")
        self.tables = dump_file(self.whole / "run.duckdb")

    def folder(self, name: str) -> Path:
        """Return a new folder."""
        folder = self._folder / name
        folder.mkdir()
        return folder

    def argv(self, folder: Path) -> list[object]:
        """Return the arguments of a run in a folder."""
        return ["run", self.model, "--db", folder / "run.duckdb", "-o", folder / "out.json", *FLAGS]

    def kill(self, argv: list[object], folder: Path, fraction: float) -> None:
        """Start a run and kill it after that part of the time that a whole run takes."""
        delay_s = fraction * self.seconds
        while not self.forker.kill_after(delay_s, argv, folder / "killed"):
            delay_s /= 2  # it was done already: it had more of the machine than the first runs
            if argv[1] == self.model:
                shutil.rmtree(folder)
                folder.mkdir()

    def resume(self, folder: Path) -> int:
        """Resume the run of a folder; return the exit code."""
        argv = ["run", "--resume", folder / "run.duckdb", "--json", "--quiet"]
        return self.forker.run(argv, folder / "printed")


def result(printed: Path) -> dict[str, Any]:
    """Return the object that a run has printed last."""
    content: dict[str, Any] = json.loads(printed.read_text().splitlines()[-1])
    return content


def reported_iterations(printed: Path) -> int:
    """Return how many iterations a run has reported as complete."""
    lines = printed.read_text().split("\n")[:-1]  # the last line may be half a line
    return sum(json.loads(line)["event"] == "iteration" for line in lines)


def stored_iterations(database: Path) -> list[tuple[Any, ...]] | None:
    """Return the complete iterations that a killed run's database holds; None if nothing is in it."""
    try:
        return dump_file(database)["iteration_log"]
    except (duckdb.Error, KeyError):
        return None


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with forking() as forker:
        yield Runs(forker, tmp_path_factory.mktemp("killed"))


def test_a_run_killed_at_any_moment_is_resumed_to_the_same_end(runs: Runs) -> None:
    assert runs.result["iterations"] > 3
    draw = random.Random(20)
    outcomes: Counter[str] = Counter()
    for moment in range(MOMENTS):
        folder = runs.folder(f"moment{moment}")
        runs.kill(runs.argv(folder), folder, draw.random())
        outcomes[check_resumed(runs, folder)] += 1
    assert outcomes["exploring"] > 0, outcomes
    assert sum(outcomes.values()) == MOMENTS


def test_a_run_killed_again_and_again_is_resumed_to_the_same_end(runs: Runs) -> None:
    folder = runs.folder("again")
    runs.kill(runs.argv(folder), folder, 0.5)
    if stored_iterations(folder / "run.duckdb"):
        for fraction in (0.3, 0.2, 0.4):
            argv: list[object] = ["run", "--resume", folder / "run.duckdb", "--json-events"]
            runs.kill(argv, folder, fraction)
    check_resumed(runs, folder)


def check_resumed(runs: Runs, folder: Path) -> str:
    """Resume a killed run; fail unless it ends as the whole run did. Return what it was killed at."""
    database = folder / "run.duckdb"
    reported_count = reported_iterations(folder / "killed")
    if not database.exists():
        assert reported_count == 0
        return "loading"
    stored_log = stored_iterations(database)
    if runs.resume(folder) == 3:
        (line,) = (folder / "printed").read_text().splitlines()
        assert line.endswith("the run was killed before exploration had begun: start it again")
        assert reported_count == 0
        return "creating"
    resumed = result(folder / "printed")
    assert stored_log is not None
    assert stored_log == runs.tables["iteration_log"][: len(stored_log)]
    assert reported_count <= len(stored_log) == resumed["resumed_after"]
    assert dump_file(database) == runs.tables
    assert (folder / "out.json").read_text() == (runs.whole / "out.json").read_text()
    for key in ("cost_before_us", "cost_after_us", "e_nodes", "e_classes", "iterations"):
        assert resumed[key] == runs.result[key], key
    assert resumed["stop_reason"] == runs.result["stop_reason"]
    return "exploring" if resumed["resumed_after"] < resumed["iterations"] else "afterwards"
