"""Every rule that ships is true: both sides are computed on many random operands and compared."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from relational_tensat.errors import UnsoundRuleError
from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules, taso_rules
from relational_tensat.rules.model import Rule
from tests.strategies import trials

SHIPPED = load_rules()
TASO = taso_rules()

#: Trials of a rule, fewer than which the test proves nothing, and attempts to draw them.
WANTED, LEAST, ATTEMPTS = 30, 20, 8000

#: Conditions, by rule and place, that are not about truth: they keep out what cannot pay, or what
#: another rule does already.
ABOUT_COST = {
    "merge-groups": {0}, "small-operand-last": {0}, "gather-small-operands": {0},
    "subtract-small-operand": {0}, "add-after-subtraction": {0}, "divide-small-operand": {0},
    "scale-of-shift": {0}, "addend-into-biased-product": {0}, "operand-before-transpose": {0},
    "block-product-of-biased-sums": {0, 1}, "merge-convolutions-of-different-kernels": {0},
    "merge-biased-convolutions-of-different-kernels": {0},
    "merge-grouped-convolutions-sharing-operand": {0},
    "merge-grouped-convolutions-of-different-kernels": {0, 2},
    "merge-functions-of-vectors": {0, 1, 2}, "merge-sums-with-products-sharing-left": {0, 1},
}  # fmt: skip
#: Conditions without which a rule is wrong, but so seldom that random operands miss it.
SELDOM = {
    "concat-of-pairs": {0, 1}, "pair-of-concats": {0, 1}, "sum-of-convolutions": {1},
    "sum-of-convolutions-with-bias": {1}, "merge-grouped-convolutions-sharing-operand": {1},
    "merge-grouped-convolutions-of-different-kernels": {1},
    "merge-sums-of-products-sharing-left": {0}, "merge-sums-with-products-sharing-left": {2},
    "drop-concat-of-one": {0},  # wrong for a tuple only
    # Integers, of the variants that divide:
    "single-number-into-left-factor": {1}, "columns-scaled": {1},
    "columns-scaled-without-bias": {1},
}  # fmt: skip


def needed_conditions() -> list[tuple[Rule, int]]:
    """Return every other condition of the rules that ship, once per family of ``each``."""
    families = {rule.name.partition("[")[0]: rule for rule in reversed(SHIPPED)}
    return [
        (rule, place)
        for name, rule in sorted(families.items())
        for place in range(len(rule.conditions))
        if place not in ABOUT_COST.get(name, set()) | SELDOM.get(name, set())
    ]


@pytest.mark.parametrize("rule", SHIPPED, ids=lambda rule: rule.name)
def test_shipped_rule_holds(rule: Rule) -> None:
    found = list(trials(rule, Random(rule.name), WANTED, ATTEMPTS))
    assert len(found) >= LEAST, "too few operands that the rule applies to"
    for trial in found:
        assert trial.holds, f"{rule.law}: {trial.configuration}"


@pytest.mark.parametrize("rule", TASO, ids=lambda rule: rule.name)
def test_taso_rule_is_marked_as_what_it_is(rule: Rule) -> None:
    """The 37 rules that are marked as unsound have a counterexample, the others have none."""
    assert _has_counterexample(rule, 2500 if rule.unsound else 20) == rule.unsound


@pytest.mark.parametrize(
    ("rule", "place"), needed_conditions(), ids=lambda each: getattr(each, "name", str(each))
)
def test_condition_is_needed(rule: Rule, place: int) -> None:
    """Without the condition, some operands give values or types that differ."""
    kept = rule.conditions[:place] + rule.conditions[place + 1 :]
    assert _has_counterexample(replace(rule, conditions=kept), 1500)


def test_a_false_law_is_found_out() -> None:
    text = '(rule r (law "x - y = y - x") (from (sub ?x ?y)) (to (sub ?y ?x)))'
    assert _has_counterexample(parse_rules(text, "f")[0], 20)


def test_a_law_that_changes_the_shape_is_found_out() -> None:
    text = '(rule r (law "x + y = x") (from (mul ?x (fill :value 1 :dtype ?d :shape ?s))) (to ?x))'
    assert _has_counterexample(parse_rules(text, "f")[0], 100)


def _has_counterexample(rule: Rule, count: int) -> bool:
    """Whether some operands, of ``count``, give values or types that differ."""
    try:
        return not all(trial.holds for trial in trials(rule, Random(rule.name), count, ATTEMPTS))
    except UnsoundRuleError:
        return True
