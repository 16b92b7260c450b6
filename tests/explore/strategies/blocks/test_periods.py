"""Finding what repeats itself in a sequence."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.explore.strategies.blocks.periods import LEAST_REPEATS, Run, find_runs


def runs(text: str, least: int = 1) -> list[tuple[str, int]]:
    """Return the pieces that repeat in a text, and how often."""
    periods = find_runs([ord(c) for c in text], [1] * len(text), least)
    return [(text[run.start : run.start + run.length], run.count) for run in periods]


def test_runs_of_texts() -> None:
    assert runs("xabababy") == [("ab", 3)]
    assert runs("pabcabcabcabqrrrrrs") == [("abc", 3), ("r", 5)]
    assert runs("ababc") == []
    assert runs("") == []


def test_short_periods_are_repeated() -> None:
    assert runs("aaaaaaaaaa", least=3) == [("aaa", 3)]
    assert runs("abababababab", least=3) == [("abab", 3)]
    assert runs("aaaaa", least=2) == []


def covered_slowly(forms: list[int]) -> int:
    """Return how many elements the largest run has, by trying all."""
    best = 0
    for start in range(len(forms)):
        for length in range(1, len(forms)):
            count = 1
            piece = forms[start : start + length]
            while forms[start + count * length : start + (count + 1) * length] == piece:
                count += 1
            if count >= LEAST_REPEATS and len(piece) == length:
                best = max(best, count * length)
    return best


@given(st.lists(st.integers(0, 2), max_size=14))
def test_runs_are_runs_and_the_largest_is_found(forms: list[int]) -> None:
    periods = find_runs(forms, [1] * len(forms), least=1)
    for run in periods:
        piece = forms[run.start : run.start + run.length]
        assert forms[run.start : run.end] == piece * run.count
        assert run.count >= LEAST_REPEATS
    assert all(first.end <= second.start for first, second in pairwise(periods))
    assert max((run.end - run.start for run in periods), default=0) == covered_slowly(forms)
    assert periods == sorted(periods, key=lambda run: run.start)
    assert all(isinstance(run, Run) for run in periods)
