"""``resume``: what a run that ended early left is brought to the end that it would have had."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bench.kills.tables import dump_file
from relational_tensat import Options, optimize, resume
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.resources import resource_dir
from relational_tensat.cli.main import main
from relational_tensat.cost import Profile
from relational_tensat.explore import IterationReport
from relational_tensat.extract.anytime import ExtractionEntry
from relational_tensat.formats import save_model
from relational_tensat.run.progress import Silent
from relational_tensat.run.resume import stored as stored_module
from tests.graphs import fan_of_matmuls, shared_matmuls
from tests.run.resume.models import layers


class Killed(BaseException):
    """Ends a run where it is."""


class Dies(Silent):
    """Progress that ends the run after so many reports."""

    def __init__(self, events: int) -> None:
        self.left = events

    def phase(self, name: str) -> None:
        self._count()

    def iteration(self, report: IterationReport) -> None:
        self._count()

    def extraction(self, incumbent_us: float, bound_us: float) -> None:
        self._count()

    def extracted(self, entry: ExtractionEntry) -> None:
        self._count()

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class Model:
    """A model in a folder, with rules and a profile that can be changed there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "layers.json"
        self.rules = folder / "some.rules"
        self.profile = folder / "own.toml"
        self.output = folder / "out.json"
        save_model(layers(2, 3), self.path)
        self.rules.write_text((resource_dir("rules") / "merge.rules").read_text())
        profiles = Path(stored_module.__file__).parents[2] / "cost" / "profiles"
        self.profile.write_text((profiles / "t4.toml").read_text())
        self.options = Options.of(
            rules=(self.rules,),
            db=folder / "run.duckdb",
            force=True,
            cost=str(self.profile),
            iterations=6,
            multi_iterations=3,
            node_limit=300,
            search="saturation",
            extract_every=1,
            patience=3,
            extractor="greedy-dag",
            verify_runs=1,
        )

    def die(self, events: int) -> bool:
        """Run until so many events have happened; return whether it died of that."""
        try:
            optimize(self.path, self.options, output=self.output, progress=Dies(events))
        except Killed:
            return True
        return False

    @property
    def db(self) -> Path:
        assert self.options.output.db is not None
        return self.options.output.db


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(tmp_path)


#: Of the events of a run: load, explore, and then iterations and extractions in turn.
EXPLORING = 6


def test_a_run_stopped_after_any_report_is_resumed_to_the_same_end(model: Model) -> None:
    whole = model.options.replace(db=model.folder / "whole.duckdb")
    expected = optimize(model.path, whole, output=model.output)
    written = model.output.read_text()
    rows = dump_file(model.folder / "whole.duckdb")
    assert [entry.final for entry in expected.extractions].count(False) > 1
    reports = set()
    for events in range(EXPLORING - 2, 40, 2):
        model.output.unlink(missing_ok=True)
        if not model.die(events):
            break
        result = resume(model.db, output=model.output)
        reports.add(result.resumed_after)
        assert dump_file(model.db) == rows
        assert model.output.read_text() == written
        assert result.stop_reason == expected.stop_reason
        assert result.cost_after_us == expected.cost_after_us
        assert result.rules_used == expected.rules_used
        extractions = [replace(entry, seconds=0.0) for entry in result.extractions]
        assert extractions == [replace(entry, seconds=0.0) for entry in expected.extractions]
    assert len(reports) > 2


def test_it_writes_only_where_it_is_told_to(
    model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has made the database may have named any place in it."""
    folder = model.folder / "here"
    folder.mkdir()
    page, cache, spills = (model.folder / name for name in ("p.html", "c.duckdb", "spills"))
    spills.mkdir()
    options = model.options.replace(view=page, cost_cache=cache, temp_directory=spills)
    with pytest.raises(Killed):
        optimize(model.path, options, output=model.output, progress=Dies(EXPLORING))
    before = sorted(model.folder.iterdir())
    monkeypatch.chdir(folder)
    result = resume(model.db)
    assert result.output is None
    assert sorted(model.folder.iterdir()) == before
    assert main(["run", "--resume", str(model.db), "--quiet"]) == 0
    assert sorted(model.folder.iterdir()) == before
    assert [path.name for path in folder.iterdir()] == ["run.opt.json"]
    capsys.readouterr()
    assert main(["run", "--resume", str(model.db), "--quiet"]) == 2
    assert "run.opt.json: exists already" in capsys.readouterr().err
    named = folder / "named.json"
    assert resume(model.db, output=named, view=folder / "named.html").output == named
    assert sorted(path.name for path in folder.iterdir()) == [
        "named.html", "named.json", "run.opt.json",
    ]  # fmt: skip


def test_it_reports_where_the_run_was(model: Model) -> None:
    assert model.die(EXPLORING)
    result = resume(model.db)
    assert result.resumed_after is not None
    assert result.notes[0].startswith(f"resumed after iteration {result.resumed_after}")
    again = resume(model.db)
    assert again.notes[0].startswith(f"the run had ended ({result.stop_reason})")
    assert again.cost_after_us == result.cost_after_us
    assert again.iterations == result.iterations
    assert {name: s.matches for name, s in again.rules.items()} == {
        name: s.matches for name, s in result.rules.items()
    }
    assert optimize(model.path, model.options.replace(db=None)).resumed_after is None


def test_relative_paths_are_those_of_where_the_run_began(
    model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    options = model.options.replace(rules=(Path("some.rules"),), cost="analytic:./own.toml")
    with pytest.raises(Killed):
        optimize(Path("layers.json"), options, output="out.json", progress=Dies(EXPLORING))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert resume(model.db, output="here.json").output == Path("here.json")
    assert (elsewhere / "here.json").is_file()


def change_rule(model: Model) -> None:
    text = model.rules.read_text()
    model.rules.write_text(text.replace("(where ", "(where (= 1 1) ", 1))


def lose_rule(model: Model) -> None:
    parts = model.rules.read_text().split("\n(rule ")
    model.rules.write_text("\n(rule ".join(parts[:-1]))


def change_profile(model: Model) -> None:
    model.profile.write_text(model.profile.read_text() + "\n# other\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_rule, "its rules have changed since it began: "),
        (lose_rule, "is gone"),
        (change_profile, "its cost profile"),
    ],
)
def test_what_has_changed_since_is_refused(
    change: Callable[[Model], None], message: str, model: Model
) -> None:
    assert model.die(EXPLORING)
    before = dump_file(model.db)
    change(model)
    with pytest.raises(
        InputError, match=f"^{model.db}: the run cannot be resumed: [^\n]*$"
    ) as error:
        resume(model.db)
    assert message in str(error.value)
    assert dump_file(model.db) == before


def test_a_small_model_is_not_needed_any_more(model: Model) -> None:
    assert model.die(EXPLORING)
    model.path.unlink()
    result = resume(model.db)
    assert result.verification.ok
    assert "its model" in result.notes[1]
    assert "is gone: the run's own copy was used" in result.notes[1]
    save_model(shared_matmuls(with_data=True), model.path)
    assert "has changed since it began" in resume(model.db).notes[1]
    with pytest.raises(InputError, match="has changed since it began"):
        resume(model.db, model.path)


def test_weights_that_are_only_in_the_file_are_needed(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relational_tensat.run.resume.digest.MOST_KEPT_BYTES", 0)
    assert model.die(EXPLORING)
    moved = model.path.rename(model.folder / "moved.json")
    with pytest.raises(InputError, match=r"is gone$"):
        resume(model.db)
    save_model(layers(2, 2), model.path)
    with pytest.raises(InputError, match=r"has changed since it began$"):
        resume(model.db)
    assert resume(model.db, moved).model == str(moved)


def test_a_model_that_was_no_file(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relational_tensat.run.resume.digest.MOST_KEPT_BYTES", 0)
    with pytest.raises(Killed):
        optimize(layers(2, 3), model.options, progress=Dies(EXPLORING))
    with pytest.raises(InputError, match=r"expected it to be given$"):
        resume(model.db)
    with pytest.raises(InputError, match=r"is not the run's model$"):
        resume(model.db, fan_of_matmuls(3))
    assert resume(model.db, layers(2, 3)).output is None


def test_costs_of_ones_own_are_needed_again(model: Model) -> None:
    flat = Profile("flat", 1e15, 1e15, 1.0)
    with pytest.raises(Killed):
        optimize(model.path, model.options, cost_model=flat, progress=Dies(EXPLORING))
    with pytest.raises(UsageError, match=r"had a cost model of its own, expected resume with one$"):
        resume(model.db)
    assert resume(model.db, cost_model=flat).cost_profile == "flat"


def test_costs_of_ones_own_are_refused_where_there_were_none(model: Model) -> None:
    assert model.die(EXPLORING)
    with pytest.raises(UsageError, match="had no cost model of its own"):
        resume(model.db, cost_model=Profile("flat", 1e15, 1e15, 1.0))
