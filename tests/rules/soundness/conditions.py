"""Whether a rule needs a condition: is there a place where the law fails once it is dropped?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relational_tensat.rules.instance import PreparedRule
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import verify_rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.element_types import TypedJudge
from relational_tensat.rules.soundness.inputs import in_dtype
from relational_tensat.rules.soundness.judgement import Judge, LawOutcome
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.rules.soundness.rule_verification import _Verification
from relational_tensat.tensor.operators.samples import SeededChoices
from relational_tensat.tensor.types import DTYPE_BYTES

#: Configurations that the rule without the condition is verified on.
TRIALS = 60
#: Attempts to draw a configuration that the condition alone keeps out: a few, of every rule of the
#: family, before many of any.
FEW, MANY = 1_500, 12_000
#: How many of these are judged as a machine computes them, too, in every element type.
ON_MACHINE = 30
#: Where no draw shows it, since what fails is a tuple: other draws of the whole verification.
SEEDS = 4


def without(rule: Rule, place: int) -> Rule:
    """Return a rule less one condition."""
    return replace(rule, conditions=rule.conditions[:place] + rule.conditions[place + 1 :])


def is_needed(family: Sequence[Rule], place: int) -> bool:
    """Whether one of some rules fails somewhere without one of its conditions."""
    rules = [rule for rule in family if place < len(rule.conditions)]
    relaxed = [without(rule, place) for rule in rules]
    if any(map(_fails_exactly, relaxed)):
        return True
    pairs = list(zip(rules, relaxed, strict=True))
    if any(_fails_where_it_applied_not(*pair, count) for count in (FEW, MANY) for pair in pairs):
        return True
    drawings = ((rule, seed) for rule in relaxed for seed in range(SEEDS))
    return any(verify_rule(r, seed=s, shrink=False).status == "unsound" for r, s in drawings)


def _fails_exactly(rule: Rule) -> bool:
    """Whether a rule fails as a law of numbers; as a machine computes it takes ten times as long."""
    verification = _Verification(rule.everywhere, 0, near_only=True)
    return verification.run(TRIALS, shrink=False).status == "unsound"


def _fails_where_it_applied_not(rule: Rule, relaxed: Rule, attempts: int) -> bool:
    judge, strict = Judge(DrawPlan(relaxed), 0), PreparedRule(rule)
    choices = SeededChoices(rule.name)
    seen = set()
    kept_out = 0
    for _ in range(attempts):
        configuration = draw_configuration(judge.plan, choices)
        if configuration is None or configuration.key in seen:
            continue
        seen.add(configuration.key)
        both = judge.sides(configuration)
        if both is None or _applies(strict, configuration):
            continue
        kept_out += 1
        if judge.holds(configuration, both) is LawOutcome.FAILS:
            return True
        if kept_out <= ON_MACHINE and _fails_on_machine(judge, strict, configuration):
            return True
    return False


def _fails_on_machine(judge: Judge, strict: PreparedRule, configuration: RuleConfiguration) -> bool:
    """Whether the law fails in one of the element types that the condition keeps out here."""
    typed = TypedJudge(judge, 0)
    for dtype in DTYPE_BYTES:
        candidate = in_dtype(judge.plan.rule, configuration, dtype)
        if candidate is not None and not _applies(strict, candidate) and typed.fails(candidate):
            return True
    return False


def _applies(rule: PreparedRule, configuration: RuleConfiguration) -> bool:
    return rule.targets(configuration.symbols, configuration.var_types) is not None
