"""Every rule that ships is true, and needs every one of its conditions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.rule_verification import _Verification
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.tensor.hints import RandomChoices, SeededChoices
from relational_tensat.tensor.operators import get_operator
from tests.rules.soundness.conditions import is_needed

RULES = [rule.everywhere for rule in load_rules()]

#: The rules, by the name before ``[``, that are about real numbers, and so are judged in float64 up
#: to rounding; all others hold exactly, whatever the functions in them are.
ABOUT_REALS = {
    # what exponentials, sigmoids, GELU and softmax are
    "complement-of-sigmoid", "drop-largest-before-softmax", "gelu-by-tanh-spelled-out",
    "gelu-of-erf", "gelu-of-tanh", "gelu-spelled-out", "product-with-sigmoid-of-exp",
    "reciprocal-of-exponential", "sigmoid-of-exp",
    "sigmoid-written-out", "sigmoid-written-out-backwards",
    "softmax-of-quotient", "softmax-spelled-out",
    # which numbers functions give: signs, bounds, zeros
    "clip-of-relu", "difference-of-relus-of-both-signs", "drop-abs-of-positive",
    "drop-clip-of-bounded", "drop-clip-of-sigmoid", "drop-relu-of-positive", "drop-relu-of-root",
    "drop-second-application", "drop-sign-before-abs", "join-clips", "negative-clip",
    "pad-after-clip", "pad-after-function", "pad-of-relu-into-max-pool", "relu-is-a-clip",
    "relu-of-clip", "relu-of-scale", "root-of-square", "square-of-abs",
    "sum-of-relus-of-both-signs", "tanh-of-negative",
    # functions that grow, and the largest element
    "activation-before-max-pool", "clip-after-extremum", "function-after-extremum",
    "shift-after-reduction",
    # numbers that rounding or a narrower element type changes
    "cast-of-number", "cast-twice", "quotient-by-number-is-scale", "scale-of-small-divisor",
    # that the nearest integer to a whole number is that, and which integers there are
    "quantize-of-concat", "quantize-of-concat-of-3", "quantize-of-concat-of-4",
    "quantize-of-dequantized-from-zero",
    "quantize-of-dequantized-from-zero-point", "quantize-of-max-pool", "quantize-of-relu",
    "signed-as-unsigned",
}  # fmt: skip

#: Few configurations each: ``rules verify`` is the deep check.
FEW = 3
#: Attempts to draw them.
ATTEMPTS = 2_000
#: Configurations that show whether a law is exact.
TRIALS = 30


def family(rule: Rule) -> str:
    """The name of a rule, or of the ``each`` that it is one of."""
    return rule.name.partition("[")[0]


FAMILIES: dict[str, list[Rule]] = {}
for _rule in RULES:
    FAMILIES.setdefault(family(_rule), []).append(_rule)
CONDITIONS = [
    (name, place) for name, rules in FAMILIES.items() for place in range(len(rules[0].conditions))
]


def test_laws_hold_wherever_the_rules_apply(subtests: pytest.Subtests) -> None:
    for rule in RULES:
        with subtests.test(rule.name):
            check_law(rule)


def check_law(rule: Rule) -> None:
    """Where the left side is valid and the conditions hold, the right side is valid and equal."""
    judge = Judge(DrawPlan(rule), 0)
    judged = 0
    for configuration, both in islice(applicable(judge, SeededChoices(rule.name)), FEW):
        for node in (*both.left.nodes, *both.right.nodes):
            operator = get_operator(node.op)
            assert operator.check(node.operand_types, dict(node.attrs)) == node.type
        assert judge.holds(configuration, both) is not LawOutcome.FAILS, (rule.law, configuration)
        judged += 1
    assert judged, "nothing fits the rule"
    if judge.floats:
        assert family(rule) in ABOUT_REALS, "true up to rounding only; is that meant?"


def applicable(judge: Judge, choices: RandomChoices) -> Iterator[tuple[RuleConfiguration, Sides]]:
    """Draw configurations that a rule applies to."""
    for _ in range(ATTEMPTS):
        configuration = draw_configuration(judge.plan, choices)
        both = None if configuration is None else judge.sides(configuration)
        if configuration is not None and both is not None:
            yield configuration, both


def test_rules_about_real_numbers_are_not_exact(subtests: pytest.Subtests) -> None:
    for name in sorted(ABOUT_REALS):
        with subtests.test(name):
            assert any(map(is_judged_in_floats, FAMILIES[name]))


def is_judged_in_floats(rule: Rule) -> bool:
    """Whether a law fails over a field, and holds in float64."""
    verdict = _Verification(rule, 0, near_only=True).run(TRIALS, shrink=False)
    return verdict.status == "sound" and verdict.evidence == "float64"


@pytest.mark.nightly
def test_every_condition_is_needed(subtests: pytest.Subtests) -> None:
    """Without it, some operands give values or types that differ, in one of the family's rules."""
    for name, place in CONDITIONS:
        with subtests.test(name, place=place):
            assert is_needed(FAMILIES[name], place)
