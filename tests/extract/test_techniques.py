"""Every technique can be left out: the optimum stays."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relational_tensat.base.errors import UsageError
from relational_tensat.extract import TECHNIQUES, extract
from relational_tensat.extract.exact.reduce.reductions.inline import inline_single_free
from relational_tensat.extract.exact.reduce.reductions.needless import drop_underivable
from relational_tensat.extract.exact.reduce.smaller_problem import Reduced, unreduced
from relational_tensat.extract.techniques import Techniques
from tests.extract.instances import brute_force_us, random_problem

SEEDS = st.integers(0, 10**9)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS, without=st.sets(st.sampled_from(sorted(TECHNIQUES))))
def test_the_optimum_is_found_without_some(seed: int, without: set[str]) -> None:
    problem = random_problem(seed)
    extraction = extract(problem, disable=without)
    assert extraction.optimal
    assert extraction.cost_us == pytest.approx(brute_force_us(problem))


def test_what_reductions_take_away_is_counted() -> None:
    problems = [random_problem(seed) for seed in range(30)]
    extractions = [extract(problem) for problem in problems]
    counted = {name for extraction in extractions for name in extraction.reductions}
    assert {"underivable", "single-users", "required"} <= counted
    for problem, extraction in zip(problems, extractions, strict=True):
        if extraction.size != (0, 0, 0):
            assert extraction.size[:2] == (problem.n_nodes, problem.n_classes)
            assert extraction.reduced_size[0] <= problem.n_nodes + problem.n_classes


def test_what_found_nothing_in_an_e_graph_is_not_asked_about_it_again() -> None:
    calls: list[str] = []

    def idle(name: str, reduced: Reduced) -> Reduced:
        calls.append(name)
        return reduced

    first, second = (unreduced(random_problem(seed)) for seed in (1, 2))
    techniques, names = Techniques(), ["underivable", "dear"]
    for reduced in (first, first, second):
        for name in names:
            assert techniques.apply(name, partial(idle, name), reduced) is reduced
    assert calls == [*names, *names]


@pytest.mark.parametrize("seed", range(20))
def test_where_no_class_is_inlined_the_e_graph_is_not_made_again(seed: int) -> None:
    reduced = drop_underivable(unreduced(random_problem(seed)))
    while inline_single_free(reduced).problem.n_classes < reduced.problem.n_classes:
        reduced = inline_single_free(reduced)
    assert inline_single_free(reduced) is reduced


def test_an_unknown_technique_names_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"unknown technique 'landmark', .*; did you mean 'landmarks'"
    ):
        extract(random_problem(1), disable=("landmark",))
