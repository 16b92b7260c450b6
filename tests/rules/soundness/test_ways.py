"""Ways that rules decide between: all are noted, those that nothing went are found, or refuse the rule."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from bench.mutations.verdicts import rules_that_are
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import (
    Verdict,
    instances,
    rule_verification,
    traces,
    verify_rule,
)
from relational_tensat.rules.soundness.decisions import Decisions
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.unreachable import is_unreachable
from tests.tiers import nightly

SOFTMAX = "(from (softmax ?x :axis ?i)) (to (softmax ?x :axis {}))"


def rule_of(text: str) -> Rule:
    return parse_rules(f'(rule r (law "l") {text})', "f")[0]


def decisions_of(rule: Rule) -> Decisions:
    return Decisions(rule, DrawPlan(rule).compiled)


def ways(text: str) -> list[str]:
    decisions = decisions_of(rule_of(text))
    return [decisions.text(goal) for goal in decisions.goals]


def quickly(rule: Rule) -> Verdict:
    return verify_rule(rule, trials=20, shrink=False)


def test_both_outcomes_of_a_decision_are_ways() -> None:
    assert ways(SOFTMAX.format("(if (= ?i 2) 2 ?i)")) == [
        "(= ?i 2) is true",
        "(= ?i 2) is false",
    ]


def test_conditions_hold_so_that_their_parts_may_go_one_way_only() -> None:
    start = SOFTMAX.format("?i")
    assert ways(f"{start} (where (= ?i 2) (not (= (rank ?x) 3)))") == [
        "(= ?i 2) is true",
        "(= (rank ?x) 3) is false",
        "(not (= (rank ?x) 3)) is true",
    ]
    assert ways(f"{start} (where (or (= ?i 2) (= ?i 3)))") == [
        "(= ?i 2) is true",
        "(= ?i 2) is false",
        "(= ?i 3) is true",
        "(or (= ?i 2) (= ?i 3)) is true",
    ]
    assert "(= ?i 2) is false" not in ways(f"{start} (where (and (= ?i 2) (= (rank ?x) 3)))")


def test_functions_that_choose_decide_too() -> None:
    chosen = ways(SOFTMAX.format("(min ?i 5)"))
    assert chosen == [
        "a first number that is smaller in (min ?i 5)",
        "a second number that is smaller in (min ?i 5)",
    ]
    assert "equal numbers in (< ?i 5)" in ways(SOFTMAX.format("(if (< ?i 5) ?i 5)"))
    assert len(ways(SOFTMAX.format("(// ?i 7)"))) == 1


#: The defects that were reported, by their names in the bench: each is refused.
REPORTED = (
    "number-literal", "dims-sum", "size-large", "pads-sum", "step-negative", "dims-remainders",
    "groups-13", "parts-seven", "clip-40-half", "clip-20-bfloat", "i64-half", "sum-of-shape",
    "perm-literal", "i32-half-relu", "channels-640",
)  # fmt: skip


@pytest.mark.parametrize("names", [REPORTED[::4], nightly(REPORTED)], ids=["some", "all"])
def test_rules_that_were_accepted_and_are_wrong_are_refused(names: Sequence[str]) -> None:
    rules = {rule.name: rule for rule in rules_that_are("wrong")}
    verdicts = {name: quickly(rules[name]) for name in names}
    assert [name for name, verdict in verdicts.items() if verdict.status == "sound"] == []
    if missed := verdicts.pop("step-negative", None):  # no operator takes such a step
        assert missed.status == "untested" and missed.shown.missed == ("(= ?t [-3]) is true",)
    assert {verdict.status for verdict in verdicts.values()} == {"unsound"}


def test_rules_like_them_that_are_right_are_found_to_be_sound() -> None:
    names = {"sum-of-shape", "number-literal", "parts-seven", "rarely-met", "index-of-sum"}
    rules = [rule for rule in rules_that_are("right") if rule.name in names]
    verdicts = {rule.name: quickly(rule) for rule in rules}
    assert {name: v.reason for name, v in verdicts.items() if v.status != "sound"} == {}
    assert "all 2 ways" in verdicts["number-literal"].reason
    assert verdicts.keys() == names


def test_what_cannot_be_is_proved() -> None:
    branch = "(from (relu ?x)) (to (relu (smul ?x :value (if (< (rank ?x) 5) 1.0 3.0))))"
    rule = rule_of(f"{branch} (where (= (rank ?x) 3))")
    decisions = decisions_of(rule)
    proved = [g for g in decisions.goals if is_unreachable(rule, decisions, g)]
    assert [decisions.text(goal) for goal in proved] == [
        "equal numbers in (< (rank ?x) 5)",
        "(< (rank ?x) 5) is false",
    ]
    free = rule_of(branch)
    decisions = decisions_of(free)
    assert not any(is_unreachable(free, decisions, goal) for goal in decisions.goals)


def test_without_z3_no_more_rules_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [rule for rule in rules_that_are("right") if rule.name in ("sum-of-shape", "i8-half")]
    for module in (instances, rule_verification):
        monkeypatch.setattr(module, "has_z3", lambda: False)
    missed, simple = (quickly(rule) for rule in rules)
    assert simple.status == "sound"
    assert missed.status == "untested"
    assert "(= (sum (shape ?x)) 41) is true" in missed.reason
    assert "relational-tensat[proofs]" in missed.reason


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
]  # fmt: skip
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]


@given(
    st.integers(-30, 30), st.integers(-30, 30), st.lists(st.sampled_from(OPERATIONS), max_size=5),
    st.sampled_from(COMPARISONS),
)  # fmt: skip
def test_traced_numbers_are_the_numbers_and_their_terms_say_so(
    a: int, b: int, steps: list[Callable[[Any, Any], Any]], compare: Callable[[Any, Any], bool]
) -> None:
    plain, number = a, traces.made(a, z3.Int("a"))
    other = traces.made(b, z3.Int("b"))
    for step in steps:
        if step in (operator.floordiv, operator.mod) and b == 0:
            continue
        plain, number = step(plain, b), step(number, other)
    assert int(number) == plain
    with traces.recording() as constraints:
        assert compare(number, other) == compare(plain, b)
    (constraint,) = constraints
    values = [(z3.Int("a"), z3.IntVal(a)), (z3.Int("b"), z3.IntVal(b))]
    assert z3.is_true(z3.simplify(z3.substitute(number.term, *values) == plain))
    term, outcome = constraint
    assert z3.is_true(z3.simplify(z3.substitute(term, *values))) == outcome


def test_results_that_are_0_everywhere_do_not_bear_out_a_way() -> None:
    """The only instances that went the way were clipped to [0, 0]: a factor of -1 made no difference."""
    text = """(rule way-58 (law "l") (from (clip (clip ?x :min ?l :max ?h) :min ?l :max ?h))
        (let ?way (and (= (mod (sum (shape ?x)) 42) 18) (and (<= 71 (dim ?x 0)) (<= (dim ?x 0) 71))
                       (= (mod (dim ?x -3) 20) 11)))
        (to (smul (clip ?x :min ?l :max ?h) :value (if ?way -1.0 1.0))) (where (= (dtype ?x) float32)))"""
    verdict = verify_rule(parse_rules(text, "f")[0], seed=918273, shrink=False)
    assert verdict.status == "unsound"
    zeros = rule_of("(from (clip ?x :min 0.0 :max 0.0)) (to (smul ?x :value 0.0))")
    assert quickly(zeros).status == "sound"  # no instance tells more
