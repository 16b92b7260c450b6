"""Runs of a kept table are those that were made, and are refused where they cannot be."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.common.report import Report
from bench.search.cells import Cell
from bench.search.kept import kept_runs, take_kept
from bench.search.runs import SearchRuns, Settings
from bench.search.search_run import (
    GrownSubgraph,
    Limits,
    Made,
    Moment,
    SearchRun,
    Snapshot,
)
from bench.search.tables import tables_of
from relational_tensat.base.errors import InputError, UsageError

SETTINGS = Settings("shipped", "tensat_t4", 2_000, 50_000, 60.0, 60.0)
OPTIONS = {
    "rules": "shipped",
    "cost": "tensat_t4",
    "subgraph_nodes": "2000",
    "universe_limit": "50000",
    "time_limit": "60.0",
    "extract_time_limit": "60.0",
}
FOCUS = SearchRun(
    "vgg19", "focus", 1, 2_000, 50, 1, 4, "focus", 9.0, 5.5, 5.25, 6.0, 6.5, 7.0, 1.0, cpu_limit_s=60.0,
    seed=2, moments=(Moment(0.5, 8.0, 20), Moment(4.0, 5.5, 50)),
    grown=(GrownSubgraph("original", 2_000, 5.5, 50, 4, "closed", 4.0, 5.25),),
    made=Made("2026-11-27", "abc", 1.25, 1.25),
)  # fmt: skip
MCTS = replace(
    FOCUS, search="mcts", seed=0, grown=(), snapshots=(Snapshot(5.0, 7.0), Snapshot(20.0, 6.0))
)
BACKTRACKING = replace(FOCUS, search="backtracking", k_multi=0, node_limit=0, seed=0, grown=())
SHARED = replace(FOCUS, seed=3, same_as="vgg19-focus-k1-2000-60s-seed2")
RUNS = [FOCUS, SHARED, MCTS, BACKTRACKING]


def keep(folder: Path) -> Path:
    """Write a table of the runs."""
    Report("search", "", tables_of(RUNS), {}, {"settings": OPTIONS}, []).write(folder)
    return folder


def cell_of(run: SearchRun) -> Cell:
    node_limit = run.node_limit or 50_000
    return Cell(run.model, run.search, Limits(1, node_limit, run.cpu_limit_s), run.seed)


def test_runs_read_back_are_those_that_were_kept(tmp_path: Path) -> None:
    found = kept_runs(keep(tmp_path / "table"), SETTINGS)
    assert found == [FOCUS, SHARED, MCTS, BACKTRACKING]
    assert [table.csv() for table in tables_of(found)] == [table.csv() for table in tables_of(RUNS)]


def test_a_table_without_subgraphs_is_read_without(tmp_path: Path) -> None:
    table = keep(tmp_path / "table")
    (table / "subgraphs.csv").unlink()
    assert kept_runs(table, SETTINGS)[0] == replace(FOCUS, grown=())


def test_cells_take_kept_runs_but_not_in_place_of_their_own(tmp_path: Path) -> None:
    table = keep(tmp_path / "table")
    experiment = SearchRuns(SETTINGS, tmp_path / "runs")
    cells = [cell_of(run) for run in RUNS]
    other_limit = replace(cells[0], limits=Limits(1, 2_000, 5.0))
    assert take_kept(table, [*cells[1:], other_limit], experiment) == 3
    assert take_kept(table, cells, experiment) == 1
    own = (experiment.folder / f"{cells[2].name}.json").read_text(encoding="utf-8")
    assert '"commit"' not in own and '"abc"' in own


def test_a_later_table_is_of_kept_runs_and_of_new_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = keep(tmp_path / "table")
    argv = ["search", "vgg19", "--searches", "focus", "--k", "1", "--node-limits", "2000"]
    argv += ["--seeds", "5", "--cpu-seconds", "60", "--kept", str(table), "--total-limit", "0"]
    assert main([*argv, "--out", str(tmp_path / "runs")]) == 0
    said = capsys.readouterr()
    assert "2 runs taken from" in said.err and "3 of 5 runs are missing" in said.err
    assert len(said.out.splitlines()) == 3


def test_other_settings_and_what_is_no_table_are_refused(tmp_path: Path) -> None:
    table = keep(tmp_path / "table")
    with pytest.raises(UsageError, match=r"made with --cost tensat_t4; expected a100"):
        kept_runs(table, replace(SETTINGS, cost="a100"))
    with pytest.raises(InputError, match=r"no runs.json; expected a folder that bench search"):
        kept_runs(tmp_path, SETTINGS)
    path = table / "runs.csv"
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    rows[2][rows[0].index("e-nodes")] = "many"
    path.write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"runs.csv:3: invalid literal"):
        kept_runs(table, SETTINGS)
    path.write_text("model,search\nvgg19,focus\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"runs.csv:1: expected the columns model, search, k_multi"
    ):
        kept_runs(table, SETTINGS)
