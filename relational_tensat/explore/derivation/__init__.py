"""Derivation: do the rules that ship prove other rules, by equality saturation?

A rule is put on operands that satisfy it, as generic as it allows. Both of its sides go into one e-graph
over the same inputs. If the laws that ship make them one class, they prove the rule there.
"""

from relational_tensat.explore.derivation.derivation import (
    Derivation,
    DerivationEffort,
    derive_rule,
    derive_rules,
)

__all__ = ["Derivation", "DerivationEffort", "derive_rule", "derive_rules"]
