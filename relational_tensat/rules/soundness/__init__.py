"""Whether rules are true: each is tried on many random configurations, exactly where it can be.

The names below are imported when they are first used: that a rule is known to be sound is found out
without what judges rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relational_tensat.base.lazy import names_on_first_use

if TYPE_CHECKING:
    from relational_tensat.rules.soundness.failure_text import (
        Typed,
        apply,
        apply_typed,
        tensor,
        tensor_typed,
    )
    from relational_tensat.rules.soundness.rule_verification import (
        DEFAULT_TRIALS,
        verify_rule,
        verify_rules,
    )
    from relational_tensat.rules.soundness.verdict import Counterexample, Verdict

__all__ = [
    "DEFAULT_TRIALS",
    "Counterexample",
    "Typed",
    "Verdict",
    "apply",
    "apply_typed",
    "tensor",
    "tensor_typed",
    "verify_rule",
    "verify_rules",
]

__getattr__ = names_on_first_use(
    __name__,
    {
        "failure_text": ("Typed", "apply", "apply_typed", "tensor", "tensor_typed"),
        "verdict": ("Counterexample", "Verdict"),
        "rule_verification": ("DEFAULT_TRIALS", "verify_rule", "verify_rules"),
    },
)
