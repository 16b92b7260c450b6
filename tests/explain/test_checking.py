"""Steps that are wrong in some way are refused, whatever made them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relational_tensat.base.errors import VerificationError
from relational_tensat.explain.checking import Checker
from relational_tensat.explain.explanation import Explanation, without_detours
from relational_tensat.explain.rewrite import Rewrite
from relational_tensat.tensor import Node, build_graph
from tests.egraph.extraction import FlatCost
from tests.explain.runs import explained
from tests.explore.example_rules import example_rules
from tests.graphs import f32


@pytest.fixture
def explanation() -> Explanation:
    nodes = [
        Node("sub", ("x", "y"), ("a",)),
        Node("sub", ("y", "x"), ("b",)),
        Node("relu", ("a",), ("c",)),
        Node("relu", ("c",), ("d",)),
        Node("add", ("d", "b"), ("e",)),
    ]
    graph = build_graph("g", {"x": f32(2, 2), "y": f32(2, 2)}, {}, nodes, ["e"])
    cost = FlatCost(by_operator={"sub": 9.0})
    explanation = explained(graph, example_rules("negate", "twice"), cost)
    assert sorted(step.rule for step in explanation.steps) == ["negate", "negate", "twice"]
    return explanation


def check(explanation: Explanation, rewrite: Rewrite) -> None:
    Checker(explanation.terms, explanation.stored.signatures).check(rewrite)


def by_rule(explanation: Explanation, name: str) -> Rewrite:
    return next(rewrite for rewrite in explanation.rewrites if rewrite.law.rule.name == name)


def test_right_steps_pass(explanation: Explanation) -> None:
    for rewrite in explanation.rewrites:
        check(explanation, rewrite)


@pytest.mark.parametrize("name", ["negate", "twice"])
def test_another_direction(explanation: Explanation, name: str) -> None:
    step = by_rule(explanation, name)
    backward = replace(
        step,
        forward=False,
        before=step.after,
        after=step.before,
        replaced=tuple(replace(r, before=r.after, after=r.before) for r in step.replaced),
    )
    check(explanation, backward)
    with pytest.raises(VerificationError, match="its rule says something else"):
        check(explanation, replace(step, forward=False))


def test_other_operands(explanation: Explanation) -> None:
    step = by_rule(explanation, "negate")
    with pytest.raises(VerificationError, match="'negate' is wrong: its rule says something else"):
        check(explanation, replace(step, operands=step.operands[::-1]))


def test_another_rule(explanation: Explanation) -> None:
    step, law = by_rule(explanation, "negate"), by_rule(explanation, "negate").law
    (other,) = example_rules("zero")  # x - x = 0: has one variable, where the step has two
    with pytest.raises((VerificationError, ValueError)):
        check(explanation, replace(step, law=replace(law, rule=other)))


def test_a_rule_whose_condition_does_not_hold(explanation: Explanation) -> None:
    from relational_tensat.rules.language import parse_rules

    step = by_rule(explanation, "negate")
    text = """(rule negate (law "a - b = a + -b") (from (sub ?a ?b)) (to (add ?a (neg ?b)))
      (where (= (rank ?a) 3)))"""
    (narrow,) = parse_rules(text, "t.rules")
    with pytest.raises(VerificationError, match="does not apply to such operands"):
        check(explanation, replace(step, law=replace(step.law, rule=narrow)))


def test_more_has_changed(explanation: Explanation) -> None:
    first, second, third = explanation.rewrites
    for step, after in ((first, second.after), (second, third.after), (first, third.after)):
        with pytest.raises(VerificationError, match="more has changed than what its rule replaces"):
            check(explanation, replace(step, after=after))


def test_detours_are_left_out(explanation: Explanation) -> None:
    first, second, third = explanation.rewrites
    back = replace(second, before=second.after, after=second.before)
    start = explanation.original
    assert without_detours(start, [first, second, third]) == [first, second, third]
    assert without_detours(start, [first, second, back, second, third]) == [first, second, third]
    assert without_detours(start, [first, second, back]) == [first]
    assert without_detours(start, [first, replace(first, before=first.after, after=start)]) == []
