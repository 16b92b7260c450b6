"""A schedule's steps in a world: which rules are next, and how another process resumes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from relational_tensat.explore.checkpoint import Checkpoint
from relational_tensat.explore.outcome import IterationReport
from relational_tensat.explore.schedule.plan import Schedule
from relational_tensat.explore.schedule.plan_text import parse_schedule
from relational_tensat.explore.schedule.rulesets import check_rulesets, rules_by_ruleset
from relational_tensat.explore.world import World


def begin_schedule(world: World, text: str) -> Schedule:
    """Return a schedule before its first step.

    Raises:
        UsageError: it is malformed, or names a ruleset that the world's rules do not have.
    """
    rules = [compiled.rule for compiled in world.rules.rules]
    plan = parse_schedule(text)
    check_rulesets(plan, rules)
    rule_names = rules_by_ruleset(rules)
    return Schedule(plan, lambda name: world.rules.named(*rule_names[name]))


def resume_schedule(
    world: World, text: str, log: Iterable[IterationReport], start: Checkpoint
) -> Schedule:
    """Return a schedule where another process left it, and note how far each of its rules has been.

    A schedule goes by what its steps added, and that is in the log: a step that united nothing added
    what the e-graph then had more e-nodes.
    """
    schedule = begin_schedule(world, text)
    matched: list[frozenset[int]] = []
    for has_added in _additions(log, start):
        matched += _matched_together(world, schedule.rules or frozenset())
        schedule.note(has_added)
    for clock, rules in enumerate(matched, start.clock - len(matched) + 1):
        world.note_matched(rules, clock)
    return schedule


def _additions(log: Iterable[IterationReport], start: Checkpoint) -> Iterator[bool]:
    """Yield whether each complete iteration added something."""
    entries = [entry for entry in log if entry.iteration <= start.iteration]
    sizes = pairwise([start.original, *(entry.e_nodes for entry in entries)])
    for entry, (before, after) in zip(entries, sizes, strict=True):
        yield entry.unions > 0 or after != before


def _matched_together(world: World, rules: frozenset[int]) -> list[frozenset[int]]:
    """Return the rules of a step as it matched them: one tick of the e-graph's clock each."""
    parts = (rules & world.rules.multi_rules, rules & world.rules.single_rules)
    return [part for part in parts if part]
