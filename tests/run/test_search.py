"""A run with ``--search focus``: verified, explained, kept, and resumed where that is possible."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

from bench.kills.tables import dump_file
from relational_tensat import Options, optimize
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.explore import IterationReport
from relational_tensat.extract.anytime import ExtractionEntry
from relational_tensat.formats import save_model
from relational_tensat.run.pipeline import resume
from relational_tensat.run.progress import Silent
from relational_tensat.run.result import Result
from relational_tensat.run.resume import stored as stored_module
from tests.run.resume.models import RULES, layers
from tests.run.resume.test_api import Dies, Killed
from tests.run.resume.test_moments import copied

#: So many e-nodes, of some hundreds that saturation would make; a process that is killed comes to the same.
LIMITS = {
    "world_nodes": 120, "node_limit": 120, "restarts": 1, "rules": RULES, "verify_runs": 1,
    "time_limit_s": None,
}  # fmt: skip


def model_in(folder: Path) -> Path:
    """Return the file of a model on which saturation misses much within the limits."""
    path = folder / "layers.json"
    save_model(layers(2, 5), path)
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return the database of a run, and its result."""
    path = tmp_path_factory.mktemp("search") / "run.duckdb"
    options = Options.of(cost="tensat_t4", search="focus", **LIMITS, db=path)
    return path, optimize(model_in(path.parent), options, output=path.with_name("out.json"))


def test_its_result_is_verified_and_explained(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = stored
    assert result.verification.ok
    assert result.optimal
    plain = optimize(
        layers(2, 5), Options.of(cost="tensat_t4", node_limit=120, rules=RULES, search="saturation")
    )
    assert result.worlds[0].best_us == pytest.approx(plain.cost_after_us)
    assert result.cost_after_us < 0.8 * plain.cost_after_us
    assert main(["explain", str(path), "--check"]) == 0
    text = capsys.readouterr().out
    assert "checked: every step is what its rule says" in text
    assert f"→ {result.cost_after_us:,.2f} µs in" in text


def test_its_database_tells_which_worlds_and_rules_led_to_the_result(
    stored: tuple[Path, Result],
) -> None:
    path, result = stored
    with duckdb.connect(str(path), read_only=True) as connection:
        worlds = connection.execute("FROM world ORDER BY id").fetchall()
        ((outside,),) = connection.execute(
            "SELECT count(*) FROM chosen ANTI JOIN world_node AS m ON m.enode = chosen.enode"
        ).fetchall()
        rules = connection.execute(
            "SELECT DISTINCT r.name FROM chosen JOIN world_node AS m ON m.enode = chosen.enode\n"
            "JOIN world_application AS a ON a.world = m.world AND a.id = m.application\n"
            "JOIN rule AS r ON r.id = a.rule"
        ).fetchall()
    assert [row[:5] for row in worlds] == [world.row[:5] for world in result.worlds]
    assert outside == 0
    assert {name for (name,) in rules} >= set(result.rules_used)


def test_once_it_has_ended_it_is_extracted_from_again(stored: tuple[Path, Result]) -> None:
    path, result = stored
    again = resume(path, output=path.with_name("again.json"))
    assert again.cost_after_us == pytest.approx(result.cost_after_us)
    assert again.stop_reason == "focus"


class Copies(Silent):
    """Progress that copies the database after some reports: what a process killed then would leave."""

    def __init__(self, database: Path, moments: Sequence[int]) -> None:
        self.copies: list[Path] = []
        self._database = database
        self._moments = moments
        self.n_reports = 0

    def iteration(self, report: IterationReport) -> None:
        self._count()

    def extracted(self, entry: ExtractionEntry) -> None:
        self._count()

    def _count(self) -> None:
        self.n_reports += 1
        if self.n_reports in self._moments:
            self.copies.append(
                copied(self._database, self._database.with_name(str(self.n_reports)))
            )

    def resumed(self, expected: Result) -> list[Result]:
        """Resume each copy; check that it ends as the run that nothing killed, and return what it gives."""
        rows, results = rows_of(self._database), []
        for copy in self.copies:
            result = resume(copy)
            results.append(result)
            assert result.stop_reason == expected.stop_reason
            assert [w.row[:9] for w in result.worlds] == [w.row[:9] for w in expected.worlds]
            assert result.cost_after_us == expected.cost_after_us
            assert rows_of(copy) == rows
        return results


def test_killed_at_any_moment_it_is_resumed_to_the_same_end(tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    options = Options.of(cost="tensat_t4", search="focus", **LIMITS, db=db)
    progress = Copies(db, (1, 6, 11, 17))
    expected = optimize(model_in(tmp_path), options, progress=progress)
    assert len({result.resumed_after for result in progress.resumed(expected)}) == 4


def test_extractions_between_iterations_change_nothing_and_are_events(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, expected = stored
    argv = ["run", str(path.with_name("layers.json")), "-o", str(path.with_name("events.json"))]
    argv += ["--cost", "tensat_t4", "--search", "focus", "--verify-runs", "1"]
    argv += ["--world-nodes", "120", "--node-limit", "120", "--restarts", "1"]
    argv += [argument for file in RULES for argument in ("--rules", str(file))]
    assert main([*argv, "--extract-every", "2", "--json", "--json-events"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["cost_after_us"] == pytest.approx(expected.cost_after_us)
    assert [world["best_us"] for world in result["worlds"]] == [w.best_us for w in expected.worlds]
    events = [json.loads(line) for line in captured.err.splitlines() if line.startswith("{")]
    extracted = [event for event in events if event["event"] == "extracted"]
    assert len(extracted) > len(expected.worlds)
    costs_us = [event["best_us"] for event in extracted]
    assert costs_us == sorted(costs_us, reverse=True)
    iterations = [event for event in events if event["event"] == "iteration"]
    assert len(iterations) == len(expected.log)


def rows_of(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return what a database holds; an extraction that was not written down is made twice."""
    rows = dump_file(path)
    rows["extraction_log"] = sorted(set(rows["extraction_log"]), key=repr)
    return rows


def test_a_search_that_cannot_be_continued_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.duckdb"
    options = Options.of(cost="tensat_t4", search="focus", **LIMITS, db=path)
    with pytest.raises(Killed):
        optimize(model_in(tmp_path), options, progress=Dies(6))
    monkeypatch.setattr(stored_module, "_RESUMABLE", ("saturation",))
    with pytest.raises(InputError) as error:
        resume(path)
    assert str(error.value) == (
        f"{path}: the run cannot be resumed: its search (focus) had not ended, "
        "expected one that had, or one by saturation"
    )
