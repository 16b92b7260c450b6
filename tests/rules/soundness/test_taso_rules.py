"""TASO's rules: the 37 that are wrong have counterexamples, repaired they have none."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.common.rule_sets import sound_taso_rules
from relational_tensat.rules.library import taso_rules
from relational_tensat.rules.model import Rule, expr_text
from relational_tensat.rules.soundness import verify_rule

pytestmark = pytest.mark.nightly

RULES = taso_rules()
REFERENCE = Path(__file__).resolve().parents[4] / "shared" / "reference" / "taso_rules.json"
#: Wrong in TENSAT, whose merge knows no groups; here it does.
WITH_GROUPS = {120, 121, 122, 123}
needs_reference = pytest.mark.skipif(not REFERENCE.exists(), reason="needs the reference")


def conditions() -> dict[int, str]:
    """What each unsound rule lacks, by number."""
    entries = json.loads(REFERENCE.read_text(encoding="utf-8"))
    return {entry["id"]: entry["sound_only_if"] for entry in entries if entry["sound_only_if"]}


def test_every_rule_is_what_it_is_marked_as(subtests: pytest.Subtests) -> None:
    for rule in RULES:
        with subtests.test(rule.name):
            check_mark(rule)


def check_mark(rule: Rule) -> None:
    """The verdict is what the file says, and a counterexample is a program that shows it."""
    outcome = verify_rule(rule, trials=150 if rule.unsound else 20, shrink=False)
    assert outcome.status == ("unsound" if rule.unsound else "sound"), outcome.reason
    assert outcome.evidence == "exact"
    if outcome.counterexample is not None:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(outcome.counterexample.text(), {})
        left, right = printed.getvalue().splitlines()[-2:]
        assert left.removeprefix("left:") != right.removeprefix("right:")


@needs_reference
def test_the_37_of_the_reference_are_marked() -> None:
    marked = {number for number, rule in enumerate(RULES) if rule.unsound}
    assert marked == set(conditions()) - WITH_GROUPS and len(marked) == 37


def test_unsound_rules_are_sound_under_their_conditions(subtests: pytest.Subtests) -> None:
    for rule, repaired in zip(RULES, sound_taso_rules(), strict=True):
        if rule.unsound:
            with subtests.test(rule.name):
                outcome = verify_rule(repaired, trials=30, shrink=False)
                assert outcome.status == "sound", outcome.reason


def test_kernels_of_even_size_are_the_smallest_counterexample() -> None:
    """TASO refuses kernels of even size under SAME. Here, as in ONNX, they are allowed.

    One that is enlarged to an odd size does not keep its place. The reference asks for one group only.
    """
    rule = sound_taso_rules()[137]
    *others, in_place = rule.conditions
    assert "enlargeable" in expr_text(in_place)
    example = verify_rule(replace(rule, conditions=tuple(others))).counterexample
    assert example is not None
    sizes = [kind.shape[2:] for kind in example.shapes.values()]
    assert sum(kind.size for kind in example.shapes.values()) <= 8 and sizes[1] != sizes[2]
