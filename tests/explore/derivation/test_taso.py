"""The rules that ship prove TASO's rules where these are sound.

A sample, spread evenly over the 139 and different from the ones that ``test_derivation`` names. All of
them, which takes minutes: ``relational-tensat rules derive rules/taso/taso.rules``.
"""

from __future__ import annotations

import pytest

from relational_tensat.explore.derivation import derive_rule
from relational_tensat.rules.library import load_rules, taso_rules
from tests.explore.derivation.taso import REFERENCE, conditional_taso_rules

pytestmark = pytest.mark.skipif(
    not REFERENCE.exists(), reason="the reference facts are not beside the project"
)

#: Every fifteenth rule; and of those that ask for a condition, what the step passes over.
SAMPLE = [*range(2, 139, 15), 61, 71, 114, 138]
SHIPPED = [law.everywhere for law in load_rules()]


@pytest.mark.parametrize("number", SAMPLE)
def test_a_sound_rule_of_tasos_is_derived(number: int) -> None:
    derivation = derive_rule(conditional_taso_rules()[number], SHIPPED)
    assert derivation.derived, (derivation.reason, derivation.where)


def test_every_unsound_rule_has_one_condition_more_than_it_had() -> None:
    conditional_rules = conditional_taso_rules()
    names = [
        new.name
        for old, new in zip(taso_rules(), conditional_rules, strict=True)
        if len(new.conditions) > len(old.conditions)
    ]
    assert names == [rule.name for rule in taso_rules() if rule.unsound]
    assert len(names) == 37
    assert not any(rule.unsound for rule in conditional_rules)
