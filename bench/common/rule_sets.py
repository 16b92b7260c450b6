"""The rules that experiments are made with, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from relational_tensat.rules.library import load_rules, read_rule_file, taso_rules
from relational_tensat.rules.model import Rule

_REPAIRED = Path(__file__).parents[1] / "data" / "taso-repaired.rules"


def sound_taso_rules() -> list[Rule]:
    """Return TASO's 139 rules, with the conditions that make those sound that are not as they are."""
    repaired = {rule.name: rule for rule in read_rule_file(_REPAIRED)}
    return [repaired.get(rule.name, rule) for rule in taso_rules()]


#: ``taso``: as they are, unsound ones included, as in the peers' runs; ``taso-sound``: with their
#: conditions; ``shipped``: ours.
RULE_SETS: Mapping[str, Callable[[], Sequence[Rule]]] = {
    "taso": taso_rules,
    "taso-sound": sound_taso_rules,
    "shipped": load_rules,
}
