"""Rules to derive, and laws to derive them from, in a few lines each."""

from __future__ import annotations

from relational_tensat.rules.language import parse_rules
from relational_tensat.rules.model import Rule


def rule(name: str, source: str, target: str, where: str = "") -> Rule:
    """Return a rule of one source."""
    conditions = f"(where {where})" if where else ""
    text = f'(rule {name} (law "{name}") (from {source}) (to {target}) {conditions})'
    (parsed,) = parse_rules(text, "example")
    return parsed


COMMUTES = rule("sum-turned-round", "(add ?x ?y)", "(add ?y ?x)")
ASSOCIATES = rule("sum-of-3", "(add (add ?x ?y) ?z)", "(add ?x (add ?y ?z))")
ROTATES = rule("rotated-sum-of-3", "(add (add ?a ?b) ?c)", "(add (add ?c ?a) ?b)")
