"""Whatever ends an extraction, its answer is acyclic and no worse than what plainer ones find."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import relational_tensat.extract.extraction as package
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.extract import (
    Extraction,
    ExtractionOptions,
    ExtractionProblem,
    dag_cost_us,
    extract,
    is_acyclic,
)
from relational_tensat.extract.exact.ilp import search_ilp
from relational_tensat.extract.exact.solve.search import Search
from relational_tensat.extract.greedy.bottom_up import tree_greedy
from relational_tensat.extract.greedy.dag import cheapest_greedy
from tests.extract.instances import build, layered_problem, random_problem, with_original

CYCLES = ("auto", "real", "int", "none")


def with_tree_greedy_as_original(seed: int) -> ExtractionProblem:
    problem = random_problem(seed)
    return with_original(problem, tree_greedy(problem))


def pressed_at(event: int) -> Callable[[float, float], None]:
    """Return progress that is notified of so many events and then of Ctrl-C."""
    seen = 0

    def progress(cost_us: float, bound_us: float) -> None:
        nonlocal seen
        seen += 1
        if seen == event:
            raise KeyboardInterrupt

    return progress


def assert_no_worse(problem: ExtractionProblem, extraction: Extraction) -> None:
    assert is_acyclic(problem, extraction.choice)
    assert extraction.cost_us == pytest.approx(dag_cost_us(problem, extraction.choice))
    limit_us = dag_cost_us(problem, tree_greedy(problem))
    if problem.has_original:
        limit_us = min(limit_us, dag_cost_us(problem, problem.original))
    assert extraction.cost_us <= limit_us * (1 + 1e-9)
    assert 0 <= extraction.bound_us <= extraction.cost_us


@pytest.mark.parametrize("cycles", CYCLES)
def test_without_any_time(cycles: str) -> None:
    for seed in range(12):
        for problem in (random_problem(seed), with_tree_greedy_as_original(seed)):
            for stop in (None, lambda: True):
                extraction = extract(
                    problem,
                    ExtractionOptions(ilp_cycles=cycles, time_limit_s=0.0),
                    watch=Watch(should_stop=stop),
                )
                assert_no_worse(problem, extraction)
                greedy_us = dag_cost_us(problem, cheapest_greedy(problem)[0])
                assert extraction.cost_us <= greedy_us * (1 + 1e-9)


@pytest.mark.parametrize("event", range(3, 13))
def test_interrupted_at_any_event(event: int) -> None:
    """The first two events come before a search begins: an interrupt there is the caller's own."""
    problem = layered_problem(layers=3, width=4, seed=event)
    assert_no_worse(
        problem, extract(problem, ExtractionOptions(time_limit_s=60), progress=pressed_at(event))
    )


def test_the_choice_to_begin_from_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = layered_problem(layers=3, width=4, seed=5)
    best = extract(problem, ExtractionOptions(time_limit_s=60))
    plain = [problem.original, tree_greedy(problem)]
    assert best.cost_us < min(dag_cost_us(problem, choice) for choice in plain)
    monkeypatch.setattr(
        "relational_tensat.extract.exact.ilp.greedy_choices", lambda *_: iter(plain)
    )
    for cycles in CYCLES:
        extraction = extract(
            problem, ExtractionOptions(ilp_cycles=cycles, time_limit_s=0.0), start=best.choice
        )
        assert extraction.cost_us == pytest.approx(best.cost_us)
        assert_no_worse(problem, extraction)


def test_a_search_that_loses_what_a_plainer_method_found_is_a_bug_that_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = layered_problem(layers=2, width=4, seed=1)
    costly = problem.original.copy()

    def loses(*args: object, **rest: object) -> Search:
        search = search_ilp(*args, **rest)  # type: ignore[arg-type]
        search.best = costly
        return search

    monkeypatch.setattr(package, "search_ilp", loses)
    best = extract(problem, ExtractionOptions("greedy-dag")).choice
    assert dag_cost_us(problem, best) < dag_cost_us(problem, costly)
    with pytest.raises(RelationalTensatError, match="plainer method"):
        extract(problem, start=best)


def test_a_search_that_returns_a_cycle_is_a_bug_that_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = build([(0, 1.0, [1]), (1, 1.0, [0]), (1, 5.0, [])], 2)
    circular = np.array([0, 1], dtype=np.int32)

    def loses(*args: object, **rest: object) -> Search:
        search = search_ilp(*args, **rest)  # type: ignore[arg-type]
        search.best = circular
        return search

    monkeypatch.setattr(package, "search_ilp", loses)
    with pytest.raises(RelationalTensatError, match="cyclic"):
        extract(problem)
