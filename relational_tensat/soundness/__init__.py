"""Whether rules are true: each is tried on many random configurations, exactly where it can be."""

from relational_tensat.soundness.counterexample import Counterexample
from relational_tensat.soundness.replay import Typed, apply, tensor
from relational_tensat.soundness.verdict import Verdict
from relational_tensat.soundness.verifying import DEFAULT_TRIALS, verify_rule, verify_rules

__all__ = [
    "DEFAULT_TRIALS",
    "Counterexample",
    "Typed",
    "Verdict",
    "apply",
    "tensor",
    "verify_rule",
    "verify_rules",
]
