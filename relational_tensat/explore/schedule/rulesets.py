"""Rulesets: the names by which a schedule calls rules."""

from __future__ import annotations

from collections.abc import Sequence

from relational_tensat.base.errors import UsageError, nearest
from relational_tensat.explore.schedule.plan import Plan, rulesets_of
from relational_tensat.rules.model import Rule

#: Rulesets that every set of rules has: all of them, those of one source, those of several.
BUILT_IN = ("all", "single", "multi")


def rules_by_ruleset(rules: Sequence[Rule]) -> dict[str, tuple[str, ...]]:
    """Return the names of each ruleset's rules.

    A rule is in ``all``, in ``single`` or ``multi``, in the ruleset of its file's name and in those of its
    ``(ruleset NAME …)``. It is a ruleset itself, as is each family ``NAME[…]``. Where two have a name,
    the first of these has it: a file ``multi.rules`` is no ruleset.
    """
    built_in: dict[str, list[str]] = {name: [] for name in BUILT_IN}
    own: dict[str, list[str]] = {}
    single: dict[str, list[str]] = {}
    for rule in rules:
        built_in["all"].append(rule.name)
        built_in["multi" if rule.is_multi else "single"].append(rule.name)
        for name in dict.fromkeys((*rule.rulesets, rule.family)):
            own.setdefault(name, []).append(rule.name)
        for name in dict.fromkeys((rule.name, rule.name.partition("[")[0])):
            single.setdefault(name, []).append(rule.name)
    return {name: tuple(members) for name, members in (single | own | built_in).items() if name}


def check_rulesets(plan: Plan, rules: Sequence[Rule]) -> None:
    """Refuse a schedule of rulesets that the rules do not have.

    Raises:
        UsageError: one does not exist; names the nearest.
    """
    rulesets = rules_by_ruleset(rules)
    for name in rulesets_of(plan):
        if name not in rulesets:
            raise UsageError(f"schedule: no ruleset or rule {name!r}{nearest(name, rulesets)}")
