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

#: The conditions that the rules which ship need: without the last one of each, they are wrong.
NEEDED = (
    "drop-sum-with-zero[add]", "drop-concat-of-one", "drop-split-into-one", "join-clips",
    "concat-of-filters", "concat-as-groups", "sum-of-weights", "sum-of-operands",
    "sum-of-convolutions", "concat-of-pairs[add]", "grid-of-tensors", "concat-of-max-pools",
    "rows-of-products-with-bias", "columns-of-products", "rows-of-products",
    "undo-block-product", "merge-convolutions-sharing-operand", "drop-transpose",
    "merge-convolutions-of-different-kernels", "merge-biased-products-sharing-right",
    "pad-into-convolution", "transpose-is-reshape", "product-of-transposes", "drop-reshape",
    "pair-before-reshape[add]", "concat-of-both-parts", "part-of-concat-second",
    "bias-into-convolution", "columns-scaled[mul]", "scale-into-norm",
)  # fmt: skip


@pytest.mark.parametrize("rule", SHIPPED, ids=lambda rule: rule.name)
def test_shipped_rule_holds(rule: Rule) -> None:
    found = list(trials(rule, Random(rule.name), WANTED, ATTEMPTS))
    assert len(found) >= LEAST, "too few operands that the rule applies to"
    for trial in found:
        assert trial.holds, f"{rule.law}: {trial.configuration}"


@pytest.mark.parametrize("rule", TASO, ids=lambda rule: rule.name)
def test_taso_rule_is_marked_as_what_it_is(rule: Rule) -> None:
    """The 37 rules that are marked as unsound have a counterexample, the others have none."""
    assert _has_counterexample(rule, 400 if rule.unsound else 20) == rule.unsound


@pytest.mark.parametrize("name", NEEDED)
def test_condition_is_needed(name: str) -> None:
    rule = next(rule for rule in SHIPPED if rule.name == name)
    assert rule.conditions
    weaker = [
        replace(rule, conditions=rule.conditions[:i] + rule.conditions[i + 1 :])
        for i in range(len(rule.conditions))
    ]
    assert any(_has_counterexample(each, 300) for each in weaker)


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
