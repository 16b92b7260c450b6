"""Every rule that ships is true, and needs every one of its conditions."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import verify_rule
from relational_tensat.rules.soundness.judging import Judge, Outcome
from relational_tensat.rules.soundness.requirements import Plan
from relational_tensat.tensor.operators import get_operator
from tests.rules.soundness.conditions import is_needed
from tests.strategies import applicable_configurations

RULES = [rule.everywhere for rule in load_rules()]

#: The rules, by the name before ``[``, that are about real numbers, and so are judged in float64 up
#: to rounding; all others hold exactly, whatever the functions in them are.
ABOUT_REALS = {
    # what exponentials, sigmoids, GELU and softmax are
    "complement-of-sigmoid", "drop-bias-before-softmax",
    "drop-shift-before-softmax", "gelu-by-tanh-spelled-out", "gelu-of-erf", "gelu-of-tanh",
    "gelu-spelled-out", "product-with-sigmoid-of-exp",
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
}  # fmt: skip

#: Few configurations each: ``rules verify`` is the deep check.
few = settings(
    max_examples=3,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


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
    judge = Judge(Plan(rule), 0)

    @few
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        configuration = data.draw(applicable_configurations(judge.plan))
        assume(configuration is not None)
        assert configuration is not None
        both = judge.sides(configuration)
        assert both is not None
        for node in (*both.left.nodes, *both.right.nodes):
            operator = get_operator(node.op)
            assert operator.check(node.operand_types, dict(node.attrs)) == node.type
        assert judge.holds(configuration, both) is not Outcome.FAILS, rule.law

    holds()
    if judge.floats:
        assert family(rule) in ABOUT_REALS, "true up to rounding only; is that meant?"


def test_rules_about_real_numbers_are_not_exact(subtests: pytest.Subtests) -> None:
    for name in sorted(ABOUT_REALS):
        with subtests.test(name):
            verdicts = [verify_rule(rule, trials=20) for rule in FAMILIES[name]]
            assert "float64" in {verdict.evidence for verdict in verdicts}


def test_every_condition_is_needed(subtests: pytest.Subtests) -> None:
    """Without it, some operands give values or types that differ, in one of the family's rules."""
    for name, place in CONDITIONS:
        with subtests.test(name, place=place):
            assert is_needed(FAMILIES[name], place)
