"""Whether a rule needs a condition: is there a place where the law fails once it is dropped?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relational_tensat.rules.instance import CompiledRule
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness import verify_rule
from relational_tensat.rules.soundness.drawing import draw_configuration
from relational_tensat.rules.soundness.judging import Judge, Outcome
from relational_tensat.rules.soundness.requirements import Plan
from relational_tensat.rules.soundness.verifying import _Verification
from relational_tensat.tensor.choices import SeededChoices

#: Configurations that the rule without the condition is verified on.
TRIALS = 60
#: What only machine numbers show, a few configurations show: they are drawn anew so often.
SEEDS = 4
#: Where these do not show it: attempts to draw one that the condition alone keeps out.
ATTEMPTS = 12_000


def without(rule: Rule, place: int) -> Rule:
    """Return a rule less one condition."""
    return replace(rule, conditions=rule.conditions[:place] + rule.conditions[place + 1 :])


def is_needed(family: Sequence[Rule], place: int) -> bool:
    """Whether one of some rules fails somewhere without one of its conditions."""
    rules = [rule for rule in family if place < len(rule.conditions)]
    relaxed = [without(rule, place) for rule in rules]
    if any(map(_fails_exactly, relaxed)) or any(map(_fails_where_it_applied_not, rules, relaxed)):
        return True
    drawings = ((rule, seed) for rule in relaxed for seed in range(SEEDS))
    return any(verify_rule(r, seed=s, shrink=False).status == "unsound" for r, s in drawings)


def _fails_exactly(rule: Rule) -> bool:
    """Whether a rule fails as a law of numbers; as a machine computes it takes ten times as long."""
    return _Verification(rule.everywhere, 0).run(TRIALS, shrink=False).status == "unsound"


def _fails_where_it_applied_not(rule: Rule, relaxed: Rule) -> bool:
    judge, strict = Judge(Plan(relaxed), 0), CompiledRule(rule)
    choices = SeededChoices(rule.name)
    seen = set()
    for _ in range(ATTEMPTS):
        configuration = draw_configuration(judge.plan, choices)
        if configuration is None or configuration.key in seen:
            continue
        seen.add(configuration.key)
        both = judge.sides(configuration)
        if (
            both is None
            or strict.targets(configuration.symbols, configuration.var_types) is not None
        ):
            continue
        if judge.holds(configuration, both) is Outcome.FAILS:
            return True
    return False
