"""Every rule that ships is true, and needs every one of its conditions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.rule_verification import _Verification
from relational_tensat.rules.soundness.sides import Sides
from relational_tensat.tensor.operators import get_operator
from tests.rules.soundness.conditions import is_needed
from tests.strategies import instances
from tests.tiers import nightly

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
    # activations and gates that `bench synthesize` found, written by others
    *(rule.name for rule in RULES if Path(rule.file).name == "found.rules"),
}  # fmt: skip

#: Configurations of each, in the suite and in the nightly tier; ``rules verify`` is the deep check.
FEW, MANY = 2, 60
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


@pytest.mark.parametrize("examples", [FEW, nightly(MANY)])
def test_laws_hold_wherever_the_rules_apply(examples: int, subtests: pytest.Subtests) -> None:
    for rule in RULES:
        with subtests.test(rule.name):
            check_law(rule, examples)


class _LawError(AssertionError):
    """A law fails; has the configuration."""


def check_law(rule: Rule, examples: int) -> None:
    """Where the left side is valid and the conditions hold, the right side is valid and equal.

    Raises:
        _LawError: it is not; of the smallest configuration that Hypothesis comes to.
    """
    judge, judged = Judge(DrawPlan(rule), 0), 0

    @settings(
        max_examples=examples, derandomize=True, database=None, deadline=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(instances(judge))
    def holds(instance: tuple[RuleConfiguration, Sides]) -> None:
        nonlocal judged
        configuration, both = instance
        for node in (*both.left.nodes, *both.right.nodes):
            operator = get_operator(node.op)
            assert operator.check(node.operand_types, dict(node.attrs)) == node.type
        if judge.holds(configuration, both) is LawOutcome.FAILS:
            raise _LawError(configuration)
        judged += 1

    holds()
    assert judged, "nothing fits the rule"
    if judge.floats:
        assert family(rule) in ABOUT_REALS, "true up to rounding only; is that meant?"


@pytest.mark.parametrize(
    "law",
    [
        "(from (add (matmul ?a ?b) (matmul ?c ?d))) (to (matmul ?a (add ?b ?d)))",
        "(from (sub ?x ?y)) (to (sub ?y ?x))",
        "(from (reduce_sum (mul ?x ?x) :axes ?a :keepdims true))"
        " (to (reduce_sum ?x :axes ?a :keepdims true))",
    ],
)
def test_a_wrong_rule_is_found_and_shrunk(law: str) -> None:
    (rule,) = parse_rules(f'(rule wrong (law "l") {law})', "f")
    with pytest.raises(_LawError) as caught:
        check_law(rule, MANY)
    (configuration,) = caught.value.args
    assert {kind.size for kind in configuration.var_types} == {1}


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
