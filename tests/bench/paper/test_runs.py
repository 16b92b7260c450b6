"""Every kind of cell, run on a graph of a few nodes."""

from __future__ import annotations

import json

import pytest

from bench.paper import runs
from bench.paper.cells import BUDGETS, Cell, saturate, sequential
from bench.paper.runs import Result, Settings, run_cell
from relational_tensat.cost import graph_cost_us, load_profile
from relational_tensat.rules.library import load_rules
from tests.bench.taso.small_graphs import shared_left

_SETTINGS = Settings(time_limit_s=20.0)
_BEFORE_US = graph_cost_us(shared_left(3), load_profile("tensat_t4"))


@pytest.fixture(autouse=True)
def _small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "TENSAT_MODELS", {"bert": lambda: shared_left(3)})


def _run(cell: Cell) -> Result:
    result = run_cell(cell, _SETTINGS)
    assert json.loads(json.dumps(result)) == result
    assert result["cost_before_us"] == pytest.approx(_BEFORE_US)
    return result


def test_saturation_finds_what_the_sequential_search_finds() -> None:
    ours, search = _run(saturate("bert", 2)), _run(sequential("bert", 1.05))
    assert (ours["stop_reason"], search["stop_reason"]) == ("saturated", "exhausted")
    best_us = ours["answers"]["ours"]["cost_us"]
    assert ours["answers"]["ours"]["status"] == "optimal"
    assert best_us < _BEFORE_US
    for budget in BUDGETS:
        assert search["budgets"][str(budget)]["best_us"] == pytest.approx(best_us)
    assert search["recomputed_us"] == pytest.approx(best_us)
    assert search["moments"][0]["best_us"] == pytest.approx(_BEFORE_US)


@pytest.mark.nightly
def test_more_multi_pattern_iterations_are_more_e_nodes() -> None:
    sizes = [_run(saturate("bert", k))["e_nodes"] for k in (0, 2)]
    assert sizes[0] < sizes[1]


def test_the_rules_are_those_of_the_cell() -> None:
    assert len(runs.rules_of(saturate("bert", 1))) == 139
    shipped = {rule.name for rule in load_rules()}
    assert {rule.name for rule in runs.rules_of(saturate("bert", 1, "shipped"))} == shipped


@pytest.mark.nightly
def test_programs_agree_whether_cycles_are_there_or_not() -> None:
    costs = set()
    for cycle_filter in ("none", "efficient"):
        answers = _run(Cell("solve", "bert", 1, cycle_filter))["answers"]
        assert set(answers) == set(runs.PROGRAMS[cycle_filter])
        costs |= {round(moment["cost_us"], 6) for moment in answers.values()}
    assert len(costs) == 1


def test_both_cycle_filters_are_timed() -> None:
    for cycle_filter in ("vanilla", "efficient"):
        result = _run(Cell("explore", "bert", 1, cycle_filter))
        assert result["explore_cpu_s"] > 0
        assert "answers" not in result


def test_the_curve_ends_at_the_best() -> None:
    moments = _run(Cell("anytime", "bert", 1))["moments"]
    assert [moment["cpu_s"] for moment in moments] == sorted(moment["cpu_s"] for moment in moments)
    assert moments[-1]["best_us"] == min(moment["best_us"] for moment in moments)
