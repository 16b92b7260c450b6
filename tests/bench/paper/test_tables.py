from __future__ import annotations

import csv
import io

import pytest

from bench.common.table import Table, columns
from bench.models import TENSAT_MODELS
from bench.paper.cells import PAPER_MODELS, TABLES, Cell, cells_of, saturate, sequential
from bench.paper.figures import figures_of
from bench.paper.tables import tables_of
from tests.bench.paper.made_up import answer, results

_PERCENT = 20.0  # from 1,200 to 1,000 µs


def _rows(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.csv())))


def test_cells_have_names_of_their_own_and_are_run_once() -> None:
    cells = cells_of(TABLES, PAPER_MODELS)
    assert len({cell.name for cell in cells}) == len(cells) == len(set(cells))
    assert {cell.model for cell in cells} == set(PAPER_MODELS)
    assert set(PAPER_MODELS) < set(TENSAT_MODELS)
    assert sequential("bert", 1.05).name == "sequential-bert-alpha1.05"
    assert saturate("bert", 0).name == "saturate-bert-k0-taso"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_needs_its_own_cells_only(name: str) -> None:
    for models in (PAPER_MODELS, ["resnet50"], ["bert"]):
        by_cell = results([name], models)
        assert all(t.rows or models == ["resnet50"] for t in tables_of([name], models, by_cell))
        figures_of([name], models, by_cell)


def test_table_1_has_the_published_figures_beside_ours() -> None:
    models = ["bert", "resnet50"]
    table, search = tables_of(["1"], models, results(["1"], models))
    bert, resnet = _rows(table)
    assert (bert["TASO published s"], bert["TENSAT published %"]) == ("13.6", "9.2")
    assert float(bert["ours %"]) == pytest.approx(_PERCENT)
    assert float(bert["ours s"]) == 1.75
    assert (bert["sequential s"], bert["its best at s"]) == ("3.0", "0.75")
    assert resnet["TASO published s"] == ""
    assert len(search.rows) == len(models) * 4
    assert {row["queued"] for row in _rows(search)} == {"321"}
    assert float(_rows(search)[0]["s / ours"]) == pytest.approx(3.0 / 1.75)


def test_cells_that_time_out_say_so() -> None:
    models = ["bert"]
    by_cell = results(TABLES, models)
    for k in (1, 2, 3):
        cell = by_cell[saturate("bert", k)]
        cell["stop_reason"], cell["explore_wall_s"] = "time", 60.0
        cell["answers"]["ours"] = answer(1000.0, "time-out", 60.0)
    for cycle_filter in ("none", "efficient"):
        for method in by_cell[Cell("solve", "bert", 2, cycle_filter)]["answers"]:
            late = answer(None, "no solution", 60.0)
            by_cell[Cell("solve", "bert", 2, cycle_filter)]["answers"][method] = late
    by_cell[Cell("explore", "bert", 2, "vanilla")]["stop_reason"] = "time"
    search = by_cell[sequential("bert", 1.05)]
    search["budgets"]["1000"], search["stop_reason"] = None, "time"

    tables = {t.name: _rows(t) for t in tables_of(TABLES, models, by_cell)}
    tables |= {t.name: _rows(t) for t in figures_of(TABLES, models, by_cell)}
    assert tables["table1"][0]["ours s"] == "1.8 (time-out)"
    assert tables["table3"][0]["exploration s"] == "time-out at 60 s"
    assert tables["table3"][0]["proof"] == "gap 12.5%"
    assert tables["table5"][1]["real t s"] == "no solution, 60 s"
    assert tables["table5"][1]["real t published s"] == ">3600"
    assert tables["table6"][1]["vanilla s"] == "time-out at 0 s"
    assert tables["table6"][1]["vanilla / efficient"] == ""
    assert tables["sequential"][-1]["s"] == "time-out at 3.0 s"
    assert tables["figure7"][3]["TENSAT published %"] == "time-out"
    assert [row["k_multi"] for row in tables["figure7"]] == ["0", "1", "2", "3"]


def test_a_cell_that_failed_says_so_and_the_others_are_there() -> None:
    models = ["bert", "vgg19"]
    by_cell = results(TABLES, models)
    for cell in list(by_cell):
        if cell.model == "bert":
            by_cell[cell] = {"error": "no solution"}
    for table in [*tables_of(TABLES, models, by_cell), *figures_of(TABLES, models, by_cell)]:
        rows = _rows(table)
        assert all("vgg19" in row["model"] for row in rows if row["model"] != "bert")
        if table.name != "figure6":
            assert "failed" in {value for row in rows for value in row.values()}, table.name


def test_curves_never_fall_and_end_where_the_run_did() -> None:
    (table,) = figures_of(["figure6"], ["bert"], results(["figure6"], ["bert"]))
    rows = [r for r in _rows(table) if r["series"] == "ours, k_multi=1"]
    assert [(float(r["s"]), round(float(r["%"]), 6)) for r in rows] == [
        (0.0, 0.0), (0.5, _PERCENT), (0.5, _PERCENT),
    ]  # fmt: skip


def test_markdown_and_csv_of_a_table() -> None:
    table = Table(
        "t",
        "A title",
        columns("name", ("x", 1), "n"),
        (("a", 1.25, 12345), ("b", None, 0)),
        "Note.",
    )
    assert table.csv() == "name,x,n\na,1.25,12345\nb,,0\n"
    assert table.markdown().splitlines() == [
        "## A title", "", "| name | x | n |", "| --- | ---: | ---: |", "| a | 1.2 | 12,345 |",
        "| b | - | 0 |", "", "Note.",
    ]  # fmt: skip
