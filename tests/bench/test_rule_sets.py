"""The rule sets of experiments."""

from __future__ import annotations

from bench.common.rule_sets import RULE_SETS


def test_sound_taso_rules_are_tasos_with_conditions() -> None:
    as_they_are, sound = RULE_SETS["taso"](), RULE_SETS["taso-sound"]()
    assert [rule.name for rule in sound] == [rule.name for rule in as_they_are]
    assert not any(rule.unsound for rule in sound)
    for rule, repaired in zip(as_they_are, sound, strict=True):
        assert (repaired.sources, repaired.targets) == (rule.sources, rule.targets)
        has_more = len(repaired.conditions) > len(rule.conditions)
        assert has_more == rule.unsound, rule.name
