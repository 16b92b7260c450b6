"""``resume``: what a run left that ended early is explored on, and brought to an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat import Options, optimize, resume
from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.base.files import resource_dir
from relational_tensat.cli.main import main
from relational_tensat.cost import Profile
from relational_tensat.formats import save_model
from relational_tensat.run.resume import run_tables as stored_module
from tests.graphs import fan_of_matmuls, shared_matmuls
from tests.run.resume.kills import Dies, Killed, gone_on
from tests.run.resume.models import layers
from tests.tiers import nightly


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
        self.profile.write_text((profiles / "tensat_t4.toml").read_text())
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


@pytest.mark.parametrize("step", [12, nightly(4)])
def test_a_run_stopped_after_any_report_goes_on_from_what_is_there(model: Model, step: int) -> None:
    reports = set()
    for events in range(EXPLORING - 2, 40, step):
        model.output.unlink(missing_ok=True)
        if not model.die(events):
            break
        result = gone_on(model.db, output=model.output)
        reports.add(result.resumed_after)
        assert model.output.exists()
        assert [entry.iteration for entry in result.log] == list(
            range((result.resumed_after or 0) + 1, result.iterations + 1)
        )
        assert [entry.final for entry in result.extractions].count(True) == 1
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


def test_it_reports_where_the_run_was_and_goes_on_again(model: Model) -> None:
    assert model.die(EXPLORING)
    result = resume(model.db)
    assert result.resumed_after is not None
    assert result.notes[0] == f"resumed after iteration {result.resumed_after}"
    again = gone_on(model.db, search="focus", subgraph_nodes=120)
    assert again.notes[0] == f"resumed after iteration {result.iterations}"
    assert again.subgraphs[0].kind == "saturation"
    assert again.iterations > result.iterations
    assert optimize(model.path, model.options.replace(db=None)).resumed_after is None


def test_only_how_it_searches_may_change(model: Model) -> None:
    assert model.die(EXPLORING)
    with pytest.raises(UsageError, match=r"option of a run that is resumed"):
        resume(model.db, cost="a100")
    assert resume(model.db, extractor="greedy", iterations=1).extractor == "greedy"


def test_rules_may_have_changed(model: Model) -> None:
    """What the former ones have built is there, with their texts."""
    assert model.die(EXPLORING)
    parts = model.rules.read_text().split("\n(rule ")
    model.rules.write_text("\n(rule ".join(parts[:-1]))
    assert set(gone_on(model.db).rules) < set(optimize(model.path, Options.of()).rules)


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


def test_costs_that_have_changed_since_are_refused(model: Model) -> None:
    assert model.die(EXPLORING)
    files = [model.db, model.db.with_name("run.duckdb.wal")]
    before = [file.read_bytes() for file in files if file.exists()]
    model.profile.write_text(model.profile.read_text() + "\n# other\n")
    with pytest.raises(
        InputError, match=f"^{model.db}: the run cannot be resumed: its cost profile [^\n]*$"
    ):
        resume(model.db)
    assert [file.read_bytes() for file in files if file.exists()] == before


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
    monkeypatch.setattr("relational_tensat.run.resume.record.MOST_KEPT_BYTES", 0)
    assert model.die(EXPLORING)
    moved = model.path.rename(model.folder / "moved.json")
    with pytest.raises(InputError, match=r"is gone$"):
        resume(model.db)
    save_model(layers(2, 2), model.path)
    with pytest.raises(InputError, match=r"has changed since it began$"):
        resume(model.db)
    assert resume(model.db, moved).source == str(moved)


def test_a_model_that_was_no_file(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relational_tensat.run.resume.record.MOST_KEPT_BYTES", 0)
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
