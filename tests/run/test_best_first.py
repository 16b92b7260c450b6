"""A run with ``--search best-first``: verified, explained, kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.formats import save_model
from relational_tensat.run.pipeline import resume
from tests.run.resume.models import RULES, layers
from tests.run.resume.test_api import Dies, Killed

LIMITS = {"node_limit": 300, "rules": RULES, "verify_runs": 1, "time_limit_s": None}


def test_its_result_is_verified_explained_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, db = tmp_path / "layers.json", tmp_path / "run.duckdb"
    save_model(layers(3, 5), model)
    options = Options.of(cost="tensat_t4", search="best-first", **LIMITS, db=db)
    result = optimize(model, options, output=tmp_path / "out.json")
    assert result.verification.ok
    assert result.stop_reason == "nodes"
    costs_us = [entry.best_us for entry in result.extractions]
    assert costs_us == sorted(costs_us, reverse=True)
    assert costs_us[-1] == pytest.approx(result.cost_after_us)
    assert main(["explain", str(db), "--check"]) == 0
    text = capsys.readouterr().out
    assert "checked: every step is what its rule says" in text
    assert f"→ {result.cost_after_us:,.2f} µs in" in text
    again = resume(db, output=tmp_path / "again.json")
    assert again.cost_after_us == pytest.approx(result.cost_after_us)


def test_one_that_had_not_ended_is_not_resumed(tmp_path: Path) -> None:
    model, db = tmp_path / "layers.json", tmp_path / "run.duckdb"
    save_model(layers(3, 5), model)
    options = Options.of(cost="tensat_t4", search="best-first", **LIMITS, db=db)
    with pytest.raises(Killed):
        optimize(model, options, progress=Dies(3))
    with pytest.raises(InputError, match="its search \\(best-first\\) had not ended"):
        resume(db)
