"""A run with ``--search focus``: verified, explained, kept, and resumed where that is possible."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.run.pipeline import resume
from relational_tensat.run.result import Result
from tests.run.resume.models import layers

#: So many e-nodes, of some hundreds that saturation would make.
LIMITS = {"world_nodes": 120, "node_limit": 120}


def model_in(folder: Path) -> Path:
    """Return the file of a model on which saturation misses much within the limits."""
    path = folder / "layers.json"
    save_model(layers(3, 5), path)
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Return the database of a run, and its result."""
    path = tmp_path_factory.mktemp("search") / "run.duckdb"
    options = Options.of(cost="tensat_t4", search="focus", **LIMITS, db=path, time_limit_s=None)
    return path, optimize(model_in(path.parent), options, output=path.with_name("out.json"))


def test_its_result_is_verified_and_explained(
    stored: tuple[Path, Result], capsys: pytest.CaptureFixture[str]
) -> None:
    path, result = stored
    assert result.verification.ok
    assert result.optimal
    plain = optimize(layers(3, 5), Options.of(cost="tensat_t4", node_limit=120))
    assert result.worlds[0].best_us == pytest.approx(plain.cost_after_us)
    assert result.cost_after_us < 0.5 * plain.cost_after_us
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


def test_one_that_was_killed_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.duckdb"
    options = Options.of(cost="tensat_t4", search="focus", **LIMITS, db=path)
    optimize(model_in(tmp_path), options)
    with duckdb.connect(str(path)) as connection:  # as a process that was killed leaves it
        connection.execute("DELETE FROM meta WHERE key = 'stop_reason'")
    with pytest.raises(InputError) as error:
        resume(path)
    assert str(error.value) == (
        f"{path}: the run cannot be resumed: its search (focus) had not ended, "
        "expected one that had, or one by saturation"
    )
