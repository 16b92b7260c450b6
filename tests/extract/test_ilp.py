from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.base.process import ProcessOptions
from relational_tensat.base.watch import Watch
from relational_tensat.extract import (
    UNUSED,
    Extraction,
    ExtractionOptions,
    ExtractionProblem,
    dag_cost_us,
    extract,
    is_acyclic,
)
from tests.extract.instances import brute_force_us, build, layered_problem, random_problem


def assert_sound(problem: ExtractionProblem, extraction: Extraction) -> None:
    """What must hold of every return."""
    assert is_acyclic(problem, extraction.choice)
    assert extraction.cost_us == dag_cost_us(problem, extraction.choice)
    assert 0 <= extraction.bound_us <= extraction.cost_us
    assert 0 <= extraction.gap <= 1
    assert extraction.cost_us <= extract(problem, ExtractionOptions("greedy-dag")).cost_us
    if extraction.optimal:
        assert extraction.gap == 0


def test_larger_e_graphs_agree_across_formulations() -> None:
    for seed in range(40):
        problem = random_problem(seed, max_classes=40)
        costs = {
            extract(problem, ExtractionOptions(ilp_cycles=cycles)).cost_us
            for cycles in ("auto", "none", "real")
        }
        assert max(costs) == pytest.approx(min(costs)), seed


def test_joint_decisions_are_found() -> None:
    problem = layered_problem(layers=2, width=4, seed=3)
    extraction = extract(problem)
    assert_sound(problem, extraction)
    assert extraction.optimal
    assert extraction.cost_us < extract(problem, ExtractionOptions("greedy")).cost_us


def test_equal_inputs_give_equal_results() -> None:
    problem = layered_problem(layers=2, width=4, seed=5)
    first, second = (
        extract(problem, process=ProcessOptions(seed=7)),
        extract(problem, process=ProcessOptions(seed=7)),
    )
    assert np.array_equal(first.choice, second.choice)
    assert (first.cost_us, first.bound_us, first.note) == (
        second.cost_us,
        second.bound_us,
        second.note,
    )


@pytest.mark.parametrize("cycles", ["auto", "real"])
def test_no_time_gives_the_greedy_answer(cycles: str) -> None:
    problem = layered_problem(layers=3, width=6, seed=1)
    extraction = extract(problem, ExtractionOptions(ilp_cycles=cycles, time_limit_s=0.0))
    assert_sound(problem, extraction)
    assert not extraction.optimal
    assert extraction.gap > 0


def test_time_limit_is_kept_and_the_gap_is_honest() -> None:
    problem = layered_problem(layers=6, width=8, seed=2)
    begin = time.monotonic()
    extraction = extract(problem, ExtractionOptions(ilp_cycles="none", time_limit_s=1.0))
    assert time.monotonic() - begin < 20
    assert_sound(problem, extraction)


def test_interrupt_returns_the_best_so_far() -> None:
    problem = layered_problem(layers=6, width=8, seed=2)
    presses = 0

    def stop_later() -> bool:
        nonlocal presses
        presses += 1
        return presses > 60

    extraction = extract(
        problem, ExtractionOptions(time_limit_s=600), watch=Watch(should_stop=stop_later)
    )
    assert presses > 60
    assert_sound(problem, extraction)
    assert not extraction.optimal


@pytest.mark.parametrize("cycles", ["auto", "none"])
def test_ctrl_c_returns_the_best_so_far(cycles: str) -> None:
    problem = layered_problem(layers=3, width=5, seed=2)
    pressed: list[float] = []

    def press(_: float, bound: float) -> None:
        if bound > 0 and not pressed:
            pressed.append(bound)
            raise KeyboardInterrupt

    extraction = extract(
        problem, ExtractionOptions(ilp_cycles=cycles, time_limit_s=600), progress=press
    )
    assert pressed
    assert_sound(problem, extraction)
    assert "interrupted" in extraction.note


def test_an_error_in_the_callers_progress_is_raised() -> None:
    def fail(_: float, bound: float) -> None:
        if bound > 0:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        extract(layered_problem(layers=2, width=4, seed=2), progress=fail)


def test_progress_only_improves() -> None:
    seen: list[tuple[float, float]] = []
    problem = layered_problem(layers=3, width=4, seed=4)
    extraction = extract(problem, progress=lambda cost, bound: seen.append((cost, bound)))
    costs, bounds = [cost for cost, _ in seen], [bound for _, bound in seen]
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)
    assert seen[-1] == pytest.approx((extraction.cost_us, extraction.bound_us))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_any_unit_of_cost_works(scale: float) -> None:
    for seed in range(60):
        problem = random_problem(seed)
        scaled = ExtractionProblem(
            problem.cost_us * scale,
            problem.node_class,
            problem.child_ptr,
            problem.child_idx,
            problem.n_classes,
            problem.root,
            problem.original,
        )
        extraction = extract(scaled)
        assert extraction.optimal
        assert extraction.cost_us / scale == pytest.approx(brute_force_us(problem))


def test_free_e_graph() -> None:
    extraction = extract(build([(0, 0.0, [1]), (1, 0.0, [])], 2))
    assert (extraction.cost_us, extraction.gap, extraction.optimal) == (0.0, 0.0, True)


def test_single_class() -> None:
    extraction = extract(build([(0, 3.0, []), (0, 2.0, [0])], 1))
    assert (extraction.cost_us, extraction.optimal, extraction.choice.tolist()) == (3.0, True, [0])


def test_several_roots_are_one_free_e_node() -> None:
    problem = build([(0, 0.0, [1, 2]), (1, 2.0, [3]), (2, 3.0, [3]), (3, 4.0, [])], 4)
    assert extract(problem).cost_us == 9.0
    assert UNUSED not in extract(problem).choice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extractor": "gredy"}, "did you mean 'greedy'"),
        ({"ilp_cycles": "reel"}, "did you mean 'real'"),
        ({"time_limit_s": -1.0}, "time_limit"),
        ({"time_limit_s": float("nan")}, "time_limit"),
    ],
)
def test_options_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ExtractionOptions(**arguments)
