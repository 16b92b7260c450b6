"""The rules that experiments are made with, by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from relational_tensat.rules.library import load_rules, read_rule_file, taso_rules
from relational_tensat.rules.model import Rule
from relational_tensat.rules.soundness.store import content_hash

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


@cache
def rules_hash(name: str) -> str:
    """Return a hash of what the rules of a set say."""
    hashes = [content_hash(rule) + repr(rule.worth) for rule in RULE_SETS[name]()]
    return hashlib.sha256("".join(hashes).encode()).hexdigest()
