"""Rules that hold over the real numbers, or on small operands, and not on every machine and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.soundness import Verdict, verify_rule
from tests.rules.soundness.wrong_rules import RIGHT, WRONG
from tests.tiers import nightly


def _halves(rules: Mapping[str, str]) -> list[Any]:
    """Return every second name, and the others for the nightly tier."""
    return [sorted(rules)[::2], nightly(sorted(rules)[1::2])]


_HALVES, _RIGHT_HALVES = _halves(WRONG), _halves(RIGHT)


@cache
def _verdict(name: str, text: str) -> Verdict:
    (rule,) = parse_rules(f'(rule {name} (law "l") {text})', "f")
    return verify_rule(rule, trials=40, shrink=False)


@pytest.mark.parametrize("names", _HALVES, ids=["half", "rest"])
def test_every_wrong_rule_is_found_with_a_counterexample(names: Sequence[str]) -> None:
    verdicts = [_verdict(name, WRONG[name]) for name in names]
    passed = [verdict.rule for verdict in verdicts if verdict.status != "unsound"]
    assert passed == []
    assert all(verdict.counterexample is not None for verdict in verdicts)
    assert len(WRONG) >= 26


@pytest.mark.parametrize("seeds", [range(2), nightly(range(2, 6))], ids=["few", "many"])
def test_what_wraps_in_few_configurations_is_found_whatever_the_seed(seeds: range) -> None:
    (rule,) = parse_rules(f'(rule r (law "l") {WRONG["shift-behind-maximum"]})', "f")
    verdicts = [verify_rule(rule, seed=seed, shrink=False) for seed in seeds]
    assert [verdict.status for verdict in verdicts] == ["unsound"] * len(seeds)


@pytest.mark.parametrize("names", _RIGHT_HALVES, ids=["half", "rest"])
def test_rules_like_them_that_are_right_stay_right(names: Sequence[str]) -> None:
    verdicts = [_verdict(name, RIGHT[name]) for name in names]
    assert [(v.rule, v.reason) for v in verdicts if v.status != "sound"] == []


def test_laws_on_integers_are_proved_for_every_width() -> None:
    types = _verdict("factor-out", RIGHT["factor-out"]).types
    assert {types[f"{sign}int{bits}"] for sign in ("", "u") for bits in (8, 16, 32, 64)} == {
        "proved"
    }
    assert types["float32"] in ("everywhere", "moderate")


def test_a_sum_undone_is_no_law_for_huge_floats() -> None:
    types = _verdict("sum-undone", RIGHT["sum-undone"]).types
    assert {types[dtype] for dtype in ("float16", "bfloat16", "float32")} == {"moderate"}


def test_counterexamples_of_machine_arithmetic_run() -> None:
    example = _verdict("relu-of-abs", WRONG["relu-of-abs"]).counterexample
    assert example is not None and example.difference.index is not None
    printed: list[str] = []
    exec(example.text(), {"print": lambda *values: printed.append(" ".join(map(str, values)))})
    assert printed[0].startswith("left: ") and printed[1].startswith("right: ")
    assert printed[0].removeprefix("left: ") != printed[1].removeprefix("right: ")
