"""The error measure, and what a comparison admits that it does not prove."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.tensor import TensorType
from relational_tensat.verify.comparison import Comparison, Setting, as_array, relative_error
from tests.graphs import f32

INF, NAN = float("inf"), float("nan")

SETTING = Setting("test")


@pytest.mark.parametrize(
    ("reference", "candidate", "error"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 4.0], [1.0, 3.0], 0.25),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([NAN, 2.0], [NAN, 1.0], 0.5),
        ([INF, -INF, 1.0], [INF, -INF, 1.0], 0.0),
        ([INF], [-INF], INF),
        ([NAN], [1.0], INF),
        ([1.0], [NAN], INF),
        ([1.0], [INF], INF),
        ([1.0], [1.0, 1.0], INF),
        ([], [], 0.0),
    ],
)
def test_relative_error(reference: list[float], candidate: list[float], error: float) -> None:
    assert relative_error(np.array(reference), np.array(candidate)) == error


def test_integers_bools_and_texts() -> None:
    assert relative_error(np.array([1, 4]), np.array([1, 3])) == 0.25
    assert relative_error(np.array([True, False]), np.array([True, True])) == 1.0
    assert relative_error(np.array(["a"]), np.array(["a"])) == 0.0
    assert relative_error(np.array(["a"]), np.array(["b"])) == INF
    sequence = as_array([np.ones(2), np.ones(3)])
    assert relative_error(sequence, as_array([np.ones(2), np.ones(3)])) == 0.0
    assert relative_error(sequence, as_array([np.ones(2), np.full(3, 1.25)])) == 0.25
    assert relative_error(sequence, as_array([np.ones(2), np.ones(2)])) == INF
    assert relative_error(sequence, as_array([np.ones(2)])) == INF
    assert relative_error(as_array([np.array([10**6])]), as_array([np.array([10**6 + 1])])) == INF
    maps = as_array([{1: 0.5, 2: 0.5}])
    assert relative_error(maps, as_array([{1: 0.5, 2: 0.25}])) == 0.5
    assert relative_error(maps, as_array([{1: 0.5, 3: 0.5}])) == INF
    assert relative_error(as_array(None), as_array(None)) == 0.0
    assert relative_error(as_array(None), np.ones(1)) == INF


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8),
    st.floats(1e-3, 1e3),
    st.integers(0, 7),
)
def test_the_error_does_not_depend_on_scale(values: list[float], scale: float, at: int) -> None:
    reference = np.array(values) + 1.0
    candidate = reference.copy()
    candidate[at % len(values)] += 0.5
    plain = relative_error(reference, candidate)
    assert relative_error(reference * scale, candidate * scale) == pytest.approx(plain, rel=1e-6)


def judged(*runs: list[float], random: frozenset[int] = frozenset()) -> tuple[bool, str]:
    comparison = Comparison(SETTING, ["y"], [f32(2)], 1e-6, random=random)
    for run in runs:
        comparison.add([np.array(run)], [np.array(run)])
    (check,) = comparison.results()
    assert check.ok
    return check.proves_something, check.note


def test_outputs_that_vary_prove_something() -> None:
    assert judged([1.0, 2.0]) == (True, "")
    assert judged([1.0, 2.0], [3.0, 4.0]) == (True, "")
    assert judged([1.0, 1.0], [2.0, 2.0]) == (True, "")
    assert judged([1.0, 2.0], [1.0, 2.0], [1.0, 3.0]) == (True, "")
    assert judged([1.0, 2.0], [1.0, 2.0 + 1e-5]) == (True, "")


def test_outputs_that_prove_nothing_are_flagged() -> None:
    assert judged([1.0, 1.0]) == (False, "the same at all elements: proves nothing")
    assert judged([1.0, 2.0], [1.0, 2.0]) == (
        False,
        "the same for all inputs drawn: proves nothing",
    )
    assert judged([1.0, 2.0], [1.0, 2.0 + 1e-6]) == (
        False,
        "the same within 5.0e-07 for all inputs drawn: proves nothing",
    )
    proves, note = judged([NAN, INF])
    assert not proves
    assert note.startswith("NaN or infinite everywhere in the original already")
    proves, note = judged([1.0, 2.0], random=frozenset({0}))
    assert not proves
    assert "random numbers: not compared" in note


def test_partly_infinite_outputs_are_explained() -> None:
    assert judged([INF, 1.0], [1.0, 2.0]) == (
        True,
        "NaN or infinite at 50.00% of the original's elements already",
    )


def test_the_worst_run_counts() -> None:
    comparison = Comparison(SETTING, ["y"], [f32(1)], 1e-6)
    for error in (0.0, 0.5, 0.25):
        comparison.add([np.array([1.0])], [np.array([1.0 + error])])
    (check,) = comparison.results()
    assert check.max_relative_error == 0.5
    assert not check.ok


def test_errors_that_rounding_explains_pass_but_prove_nothing() -> None:
    comparison = Comparison(SETTING, ["a", "b", "c"], [f32(2)] * 3, 1e-3)
    reference = [np.array([1.0, 0.5])] * 3
    comparison.add(reference, [reference[0] + 0.5, reference[1] + 0.5, reference[2]])
    comparison.excuse([0.5, 1e-6, 0.1], "rounding alone")
    explained, wrong, right = comparison.results()
    assert explained.ok
    assert not explained.proves_something
    assert "moved by 5.0e-01 by rounding alone" in explained.note
    assert not wrong.ok
    assert right.ok
    assert right.proves_something


def test_integers_are_equal_or_wrong() -> None:
    """One off in a thousand is within a float's tolerance; what rounding explains is no excuse."""
    kinds = [TensorType("int8", (2,)), f32(2)]
    comparison = Comparison(SETTING, ["q", "y"], kinds, 0.1)
    reference = [np.array([100, -100], np.int8), np.array([1.0, -1.0])]
    comparison.add(reference, [np.array([100, -99], np.int8), np.array([1.0, -1.01])])
    comparison.excuse([1.0, 1.0], "rounding alone")
    assert [check.ok for check in comparison.results()] == [False, True]
    assert str(comparison.compared(True, "", 1)).endswith("of the largest element, integers equal")


def test_integers_that_no_float_holds_differ() -> None:
    assert relative_error(np.array([2**60]), np.array([2**60 + 1])) > 0.0
