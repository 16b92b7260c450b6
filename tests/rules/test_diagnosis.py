"""Why a rule does not apply: the same verdict as ``instantiate``, and the first reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from relational_tensat.base.errors import UnsoundRuleError
from relational_tensat.rules.diagnosis import Refusal, checks, diagnose
from relational_tensat.rules.instance import Instance, instantiate
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import TensorType
from tests.strategies import RuleConfiguration, draw_configuration

ALL = [*load_rules(), *taso_rules()]


def one(text: str) -> Rule:
    (rule,) = parse_rules(text, "test.rules")
    return rule


def refusal(rule: Rule, symbols: list[tuple[str, dict[str, object]]], *types: str) -> Refusal:
    """Diagnose a rule on tensors of shapes such as ``2x3``; the result has the first one's type."""
    kinds = tuple(TensorType("float32", tuple(map(int, t.split("x"))) if t else ()) for t in types)
    outcome = diagnose(rule, symbols, kinds, kinds[:1])  # type: ignore[arg-type]
    assert isinstance(outcome, Refusal)
    return outcome


def judged(rule: Rule, at: RuleConfiguration) -> Instance | None:
    try:
        return instantiate(rule, at.symbols, at.var_types, at.root_types)
    except UnsoundRuleError:
        return None


def test_the_verdict_is_that_of_instantiate_and_the_reason_is_the_first() -> None:
    random = Random(17)
    stages: Counter[str] = Counter()
    for rule in ALL:
        for _ in range(3):
            drawn = draw_configuration(rule, random)
            if drawn is None:
                continue
            outcome = diagnose(rule, drawn.symbols, drawn.var_types, drawn.root_types)
            expected = judged(rule, drawn)
            if not isinstance(outcome, Refusal):
                assert outcome == expected
                continue
            assert expected is None
            assert outcome.actual
            stages[outcome.check.stage] += 1
            assert_first(rule, drawn, outcome)
    assert min(stages[stage] for stage in ("attribute", "where", "target")) > 5


def assert_first(rule: Rule, drawn: RuleConfiguration, refusal: Refusal) -> None:
    """Fail unless a rule with only the checks before a refusal passes them."""
    place = checks(rule).index(refusal.check)
    before = [check for check in checks(rule)[:place] if check.stage in ("where", "worth")]
    wheres = sum(check.stage == "where" for check in before)
    worths = len(before) - wheres
    earlier = replace(rule, conditions=rule.conditions[:wheres], worth=rule.worth[:worths])
    again = diagnose(earlier, drawn.symbols, drawn.var_types, drawn.root_types)
    if isinstance(again, Refusal):
        assert again.check.stage not in ("where", "worth")
        if refusal.check.stage not in ("where", "worth"):
            assert again == refusal


@pytest.mark.parametrize(
    ("condition", "actual"),
    [
        ("(= (rank ?x) 3)", "(rank ?x) = 2"),
        ("(and (= (rank ?x) 2) (< (dim ?x 0) (dim ?y 0)))", "(dim ?x 0) = 2, (dim ?y 0) = 2"),
        ("(or (= (rank ?x) 1) (= (dim ?x 0) 9))", "(rank ?x) = 2, (dim ?x 0) = 2"),
        ("(not (= (rank ?x) 2))", "(rank ?x) = 2"),
        ("(same-except ?x ?y 0)", "?x is float32[2,3], ?y is float32[2,4]"),
        ("(= (dim ?x 5) 1)", "(dim ?x 5) is not defined: ?x is float32[2,3]"),
        ("(= (get (shape ?y) 2) 1)", "(get (shape ?y) 2) is not defined: (shape ?y) = [2 4]"),
        ("(is-float ?x)", None),
    ],
)
@pytest.mark.parametrize("clause", ["where", "worth"])
def test_what_a_condition_was_computed_from(
    clause: str, condition: str, actual: str | None
) -> None:
    rule = one(
        f'(rule r (law "l") (from (relu (tanh (concat ?x ?y :axis 1))))'
        f" (to (tanh (relu (concat ?x ?y :axis 1)))) ({clause} {condition}))"
    )
    kinds = (TensorType("float32", (2, 3)), TensorType("float32", (2, 4)))
    symbols = [("relu", {}), ("tanh", {}), ("concat", {"axis": 1})]
    outcome = diagnose(rule, symbols, kinds, (TensorType("float32", (2, 7)),))
    if actual is None:
        assert isinstance(outcome, Instance)
    else:
        assert isinstance(outcome, Refusal)
        assert (outcome.check.stage, outcome.check.requirement) == (clause, condition)
        assert outcome.actual == actual


def test_operators_constants_and_repeated_attributes() -> None:
    rule = one('(rule r (law "l") (from (softmax (softmax ?x :axis ?a) :axis ?a)) (to (relu ?x)))')
    assert [(check.stage, check.requirement) for check in checks(rule)] == [
        ("operator", "operators and constants"),
        ("attribute", "?a"),
        ("target", "(relu ?x)"),
        ("type", "(softmax (softmax ?x :axis ?a) :axis ?a)"),
    ]
    two = refusal(rule, [("softmax", {"axis": 0}), ("softmax", {"axis": 1})], "2x3")
    assert (two.check.stage, two.actual) == ("attribute", "0 and 1")
    other = refusal(rule, [("softmax", {"axis": 0}), ("relu", {})], "2x3")
    assert (other.check.stage, other.actual) == ("operator", "relu for softmax")
    pinned = one('(rule r (law "l") (from (softmax ?x :axis 0)) (to (relu ?x)))')
    constant = refusal(pinned, [("softmax", {"axis": 1})], "2x3")
    assert (constant.check.stage, constant.actual) == ("operator", "softmax with axis=1")


def test_a_target_that_cannot_be_built_or_is_of_another_type() -> None:
    rule = one('(rule r (law "l") (from (relu ?x)) (to (transpose ?x :perm [1 0])))')
    wrong = refusal(rule, [("relu", {})], "2x3")
    assert (wrong.check.stage, wrong.actual) == ("type", "float32[2,3] would become float32[3,2]")
    shape = refusal(rule, [("relu", {})], "2x3x4")
    assert (shape.check.stage, shape.check.requirement) == ("target", "(transpose ?x :perm [1 0])")
    assert shape.actual.startswith("transpose: ")
    computed = one('(rule r (law "l") (from (relu ?x)) (to (reshape ?x :shape (list (dim ?x 1)))))')
    undefined = refusal(computed, [("relu", {})], "6")
    assert undefined.actual == "(dim ?x 1) is not defined: ?x is float32[6]"
