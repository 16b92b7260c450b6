"""A schedule's steps in a world: which rules are next."""

from __future__ import annotations

from relational_tensat.explore.schedule.plan import Schedule
from relational_tensat.explore.schedule.plan_text import parse_schedule
from relational_tensat.explore.schedule.rulesets import check_rulesets, rules_by_ruleset
from relational_tensat.explore.world import World


def begin_schedule(world: World, text: str) -> Schedule:
    """Return a schedule before its first step.

    Raises:
        UsageError: it is malformed, or names a ruleset that the world's rules do not have.
    """
    rules = [compiled.rule for compiled in world.rules.rules]
    plan = parse_schedule(text)
    check_rulesets(plan, rules)
    rule_names = rules_by_ruleset(rules)
    return Schedule(plan, lambda name: world.rules.named(*rule_names[name]))
