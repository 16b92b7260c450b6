"""Growing by several processes: what is found is the same, and a stop is heard everywhere."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from relational_tensat.base.runner import CancelledPart, Here
from relational_tensat.base.watch import Watch
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search import term_growth
from relational_tensat.mugraph.search.abstract_egraph import saturated
from relational_tensat.mugraph.search.block_terms import Job
from relational_tensat.mugraph.search.kernel_search import SearchProgress, search_kernels
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.search.structure import structure_of
from tests.fleet.test_places import needs_ray, ray_cluster
from tests.mugraph.searches import searched

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def test_two_processes_find_what_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_growth, "_LEAST_CONFIGURATIONS", 20)
    seen: list[SearchProgress] = []
    options = SearchOptions(max_kernels=2, on="processes:2")
    result = search_kernels(program("mlp"), options, progress=seen.append)
    assert result == searched("mlp", 2)
    parts = {1: 2, 2: 2}  # of 45 and 52 configurations
    assert [(p.level, p.growth.done, p.growth.whole) for p in seen] == [
        (level, done + 1, whole) for level, whole in parts.items() for done in range(whole)
    ]
    assert seen[-1].growth.counts.terms == result.levels[1].terms
    assert [p.routes for p in seen] == [0, 0, 1, 1]


@needs_ray
@pytest.mark.filterwarnings("default")
def test_a_cluster_finds_what_one_process_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_growth, "_LEAST_CONFIGURATIONS", 10)
    seen: list[SearchProgress] = []
    with ray_cluster(monkeypatch) as cluster:
        options = SearchOptions(max_kernels=2, on=f"ray:{cluster.address}")
        result = search_kernels(program("mlp"), options, progress=seen.append)
    assert result == searched("mlp", 2)
    assert {(each.level, each.growth.whole) for each in seen} == {(1, 4), (2, 5)}


class Cancelling(Here):
    """Gives two parts; all others are cancelled, as a cluster does when it is stopped."""

    slots = 2
    given = 0

    def submit(
        self, compute: Callable[[_Task], _Result], task: _Task, memory_bytes: int = 0
    ) -> Future[_Result]:
        Cancelling.given += 1
        if Cancelling.given <= self.slots:
            return super().submit(compute, task)
        future: Future[_Result] = Future()
        future.set_exception(CancelledPart("cancelled"))
        return future


def test_what_came_before_a_cancelled_part_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = searched("mlp", 1)
    monkeypatch.setattr(term_growth, "_LEAST_CONFIGURATIONS", 10)
    monkeypatch.setattr(term_growth, "runner", lambda text: Cancelling())
    Cancelling.given = 0
    result = search_kernels(program("mlp"), SearchOptions(max_kernels=1))
    assert (result.is_complete, whole.is_complete) == (False, True)
    assert 0 < result.levels[0].terms < whole.levels[0].terms


def test_a_part_that_is_stopped_gives_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_growth, "is_stopping", lambda: True)
    structure = structure_of(program("mlp"))
    abstract = saturated(structure.program)
    rows = abstract.database.execute("FROM abstract")
    monkeypatch.setattr(term_growth, "_grow", lambda search, most, report: _wait(search))
    part = term_growth._GrowthPart(rows, structure, SearchOptions(), [Job((), ())])
    grown, is_complete = term_growth._grow_part(part)
    assert not is_complete and not grown.terms


def test_after_the_time_nothing_is_begun() -> None:
    structure = structure_of(program("mlp"))
    over = Watch(should_stop=lambda: True)
    with term_growth.Grower(structure, SearchOptions(on="processes:2"), over) as grower:
        search, is_complete = grower.grown(saturated(structure.program).database, [], _unwanted)
    assert not is_complete and not search.configurations


def _wait(search: object) -> None:
    """Run statements until one is refused."""
    database = search._database  # type: ignore[attr-defined]
    while True:
        database.execute("SELECT 1")


def _unwanted(growth: term_growth.TermGrowth) -> None:
    raise AssertionError("nothing grows")
