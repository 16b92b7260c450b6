"""The rules that ship prove TASO's rules where these are sound.

A sample, spread evenly over the 139 and different from the ones that ``test_derivation`` names. All of
them, which takes minutes: ``relational-tensat rules derive rules/taso/taso.rules``.
"""

from __future__ import annotations

import pytest

from bench.common.rule_sets import sound_taso_rules
from relational_tensat.explore.derivation import derive_rule
from relational_tensat.rules.library import load_rules

#: Every fifteenth rule; and of those that ask for a condition, what the step passes over.
SAMPLE = [*range(2, 139, 15), 61, 71, 114, 138]
SHIPPED = [law.everywhere for law in load_rules()]


@pytest.mark.parametrize("number", SAMPLE)
def test_a_sound_rule_of_tasos_is_derived(number: int) -> None:
    derivation = derive_rule(sound_taso_rules()[number], SHIPPED)
    assert derivation.derived, (derivation.reason, derivation.where)
