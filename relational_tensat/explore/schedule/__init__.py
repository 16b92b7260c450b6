"""Schedules: which rules take part in which steps, written as text or built in Python."""

from relational_tensat.explore.schedule.plan import Plan, Repeat, Run, Saturate, Sequence
from relational_tensat.explore.schedule.plan_text import parse_schedule
from relational_tensat.explore.schedule.rulesets import BUILT_IN, rules_by_ruleset

__all__ = [
    "BUILT_IN",
    "Plan",
    "Repeat",
    "Run",
    "Saturate",
    "Sequence",
    "parse_schedule",
    "rules_by_ruleset",
]
