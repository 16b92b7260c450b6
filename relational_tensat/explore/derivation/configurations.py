"""Where a rule is to be derived: a few sets of operands on which it applies, generic ones first."""

from __future__ import annotations

from typing import TypeAlias

from relational_tensat.explore.derivation.spreading import spread
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.draws import RuleConfiguration, draw_configuration
from relational_tensat.rules.soundness.requirements import DrawPlan
from relational_tensat.tensor.hints import RandomChoices

#: Per operand, per dimension: 1, or an id that equal sizes share.
Pattern: TypeAlias = tuple[tuple[int, ...], ...]

#: So many different patterns of equal sizes are drawn, of which a few are chosen; fewer where so many
#: operands in a row bring up no new one.
_PATTERNS = 16
_PATIENCE = 150
_ATTEMPTS = 4_000


def generic_configurations(
    rule: Rule, count: int, choices: RandomChoices
) -> list[RuleConfiguration]:
    """Return up to ``count`` configurations on which a rule applies, no two of one pattern.

    The first is the most generic that was drawn: the fewest sizes of 1, then the most different ones.
    The others are taken evenly from there to the most special, so that operands that broadcast and
    convolutions of several groups have their turn.

    Raises:
        UnsoundRuleError: on operands that were drawn the rule changes the type of a result.
    """
    different: dict[Pattern, RuleConfiguration] = {}
    for configuration in _drawn(rule, choices):
        wider = spread(rule, configuration)
        different.setdefault(pattern(wider), wider)
    ranked = [different[key] for key in sorted(different, key=_specialness)]
    if len(ranked) <= count:
        return ranked
    return [ranked[i * (len(ranked) - 1) // max(count - 1, 1)] for i in range(count)]


def _drawn(rule: Rule, choices: RandomChoices) -> list[RuleConfiguration]:
    """Return configurations on which the rule applies, one for each pattern that comes up."""
    drawn: dict[Pattern, RuleConfiguration] = {}
    since_new, plan = 0, DrawPlan(rule)
    for _ in range(_ATTEMPTS):
        configuration = draw_configuration(plan, choices)
        if configuration is None or configuration.instantiate(rule) is None:
            continue
        count = len(drawn)
        drawn.setdefault(pattern(configuration), configuration)
        since_new = since_new + 1 if len(drawn) == count else 0
        if len(drawn) == _PATTERNS or since_new == _PATIENCE:
            break
    return list(drawn.values())


def pattern(configuration: RuleConfiguration) -> Pattern:
    """Return which sizes of the operands are equal to each other, and which are 1."""
    names: dict[int, int] = {1: 1}
    return tuple(
        tuple(names.setdefault(size, len(names) + 1) for size in kind.shape)
        for kind in configuration.var_types
    )


def _specialness(key: Pattern) -> tuple[int, int, Pattern]:
    sizes = [size for shape in key for size in shape]
    return sizes.count(1), -len(set(sizes)), key
