"""Schedules: which rules take part in which steps, written as text or built in Python.

The names below are imported when they are first used: reading options alone needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.explore.schedule.plan import (
        Plan,
        RepeatRules,
        RunRules,
        Saturate,
        Sequence,
        parse_schedule,
    )
    from relational_tensat.explore.schedule.rulesets import (
        BUILT_IN,
        check_rulesets,
        rules_by_ruleset,
    )

__all__ = [
    "BUILT_IN",
    "Plan",
    "RepeatRules",
    "RunRules",
    "Saturate",
    "Sequence",
    "check_rulesets",
    "parse_schedule",
    "rules_by_ruleset",
]

__getattr__ = names_on_first_use(
    __name__,
    {
        "plan": (
            "Plan",
            "RepeatRules",
            "RunRules",
            "Saturate",
            "Sequence",
            "parse_schedule",
        ),
        "rulesets": (
            "BUILT_IN",
            "check_rulesets",
            "rules_by_ruleset",
        ),
    },
)
