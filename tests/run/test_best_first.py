"""A run with ``--search best-first``: verified, explained, kept."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from relational_tensat import Options, optimize
from relational_tensat.cli.main import main
from relational_tensat.explore import IterationReport
from relational_tensat.extract.anytime import extractor
from relational_tensat.formats import save_model
from relational_tensat.run.pipeline import resume
from relational_tensat.run.progress import Silent
from tests.run.resume.models import RULES, layers
from tests.run.test_search import Copies, rows_of

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


@pytest.mark.parametrize("changes", [{}, {"extract_every": 2, "seed": 5}])
def test_killed_at_any_moment_it_is_resumed_to_the_same_end(
    tmp_path: Path, changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extractor, "LEAST_S", 60.0)  # ended by its time, it may be another graph
    model, db = tmp_path / "layers.json", tmp_path / "run.duckdb"
    save_model(layers(3, 5), model)
    options = Options.of(cost="tensat_t4", search="best-first", **LIMITS, **changes, db=db)
    progress = Copies(db, (1, 2, 5, 8))
    expected = optimize(model, options, progress=progress)
    assert rows_of(db)["universe_application"]
    reached = set()
    for result in progress.resumed(expected):
        reached.add(result.resumed_after)
        assert [r.e_nodes for r in result.log] == [r.e_nodes for r in expected.log]
    assert len(reached) >= 3


def test_ctrl_c_leaves_the_cheapest_graph(tmp_path: Path) -> None:
    model, db = tmp_path / "layers.json", tmp_path / "run.duckdb"
    save_model(layers(3, 5), model)
    options = Options.of(cost="tensat_t4", search="best-first", **LIMITS, db=db)
    result = optimize(model, options, progress=PressesCtrlC(3))
    assert result.stop_reason == "interrupted"
    assert len(result.log) == 3
    assert result.verification.ok
    least_us = min(entry.best_us for entry in result.extractions)
    assert result.cost_after_us == pytest.approx(least_us)
    assert result.cost_after_us < result.cost_before_us


class PressesCtrlC(Silent):
    """Progress that presses Ctrl-C once after an iteration."""

    def __init__(self, after: int) -> None:
        self._after = after

    def iteration(self, report: IterationReport) -> None:
        if report.iteration == self._after:
            signal.raise_signal(signal.SIGINT)
