from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.common.cell_results import Result, results_of
from bench.paper.cells import Cell, saturate
from bench.paper.results import failure
from bench.paper.runs import PaperRuns, Settings
from relational_tensat.base.errors import InputError, NoSolutionError

_CELLS = [saturate("bert", 1), saturate("vgg19", 1), Cell("anytime", "bert", 1)]


class _Runner:
    """Counts what is run."""

    def __init__(self, rules: str = "some") -> None:
        self.ran: list[str] = []
        self.rules = rules
        self.interrupts = False

    def made_with(self, cell: Cell) -> Result:
        return {"rules": self.rules}

    def short(self, result: Result) -> str:
        return str(result["stop_reason"])

    def run(self, cell: Cell) -> Result:
        if self.interrupts and cell is _CELLS[1]:
            raise KeyboardInterrupt
        self.ran.append(cell.name)
        if cell.kind == "anytime":
            raise NoSolutionError("nothing found")
        return {"stop_reason": "saturated", "number": len(self.ran)}


@pytest.fixture
def runner() -> _Runner:
    return _Runner()


def test_what_was_run_is_not_run_again(runner: _Runner, tmp_path: Path) -> None:
    first = results_of(_CELLS[:2], runner, tmp_path)
    assert len(runner.ran) == 2
    again = results_of(_CELLS, runner, tmp_path)
    assert runner.ran == [cell.name for cell in _CELLS]
    assert [again[cell] for cell in _CELLS[:2]] == [first[cell] for cell in _CELLS[:2]]
    assert list(again) == _CELLS


def test_a_failure_is_kept_with_its_reason(runner: _Runner, tmp_path: Path) -> None:
    for _ in range(2):
        results = results_of(_CELLS[2:], runner, tmp_path)
        assert results[_CELLS[2]] == {"error": "nothing found"}
    assert len(runner.ran) == 1


def test_what_is_made_with_something_else_is_run_again(runner: _Runner, tmp_path: Path) -> None:
    results_of(_CELLS[:1], runner, tmp_path)
    runner.rules = "others"
    results_of(_CELLS[:1], runner, tmp_path)
    results_of(_CELLS[:1], runner, tmp_path, fresh=True)
    assert len(runner.ran) == 3


def test_settings_and_rules_are_what_a_run_of_the_paper_is_made_with() -> None:
    settings = Settings(), replace(Settings(), time_limit_s=1.0)
    cells = _CELLS[0], replace(_CELLS[0], variant="shipped")
    made = [str(PaperRuns(one).made_with(cell)) for one in settings for cell in cells]
    assert len(set(made)) == 4


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_file_is_named(runner: _Runner, tmp_path: Path, text: str) -> None:
    path = tmp_path / f"{_CELLS[0].name}.json"
    path.write_text(text)
    with pytest.raises(
        InputError, match=r"saturate-bert-k1-taso\.json: (not JSON|expected an object)"
    ):
        results_of(_CELLS[:1], runner, tmp_path)


def test_a_half_done_run_left_what_it_had(runner: _Runner, tmp_path: Path) -> None:
    runner.interrupts = True
    with pytest.raises(KeyboardInterrupt):
        results_of(_CELLS, runner, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert json.loads(kept.read_text())["result"]["stop_reason"] == "saturated"
    runner.interrupts = False
    results_of(_CELLS[:2], runner, tmp_path)
    assert runner.ran == [_CELLS[0].name, _CELLS[1].name]


def test_what_is_left_when_the_total_time_is_over_is_not_kept(
    runner: _Runner, tmp_path: Path
) -> None:
    results = results_of(_CELLS, runner, tmp_path, total_limit_s=0.0)
    assert {failure(result) for result in results.values()} == {"not run"}
    assert runner.ran == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.nightly
def test_two_at_a_time_are_the_same(tmp_path: Path) -> None:
    cells = [Cell("explore", "resnet50", k, "efficient") for k in (0, 1)]
    results = results_of(cells, PaperRuns(Settings()), tmp_path, jobs=2)
    assert results[cells[1]]["e_nodes"] == 149
    assert {path.name for path in tmp_path.iterdir()} == {f"{cell.name}.json" for cell in cells}
