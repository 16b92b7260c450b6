"""Further rules for an e-graph that has been explored: each applied once, in one more iteration.

For rules that lead nowhere but to e-nodes that no rule reads: it makes no difference when they are applied,
and applied last, they keep nothing else from being found.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from relational_tensat.base.records import record
from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.ending import write_ending
from relational_tensat.explore.exploration_options import ExplorationOptions
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.outcome import IterationReport, RuleStats, rule_stats
from relational_tensat.explore.step import StepBudget, step
from relational_tensat.explore.world import begin_world
from relational_tensat.rules.model import Rule

_NONE: Mapping[str, Collection[str]] = MappingProxyType({})


@record
class Further:
    """What further rules did: the iteration, and each of them by name."""

    report: IterationReport
    rules: Mapping[str, RuleStats]


def apply_further(
    egraph: EGraph,
    rules: Sequence[Rule],
    options: ExplorationOptions,
    masks: Mapping[str, Collection[str]] = _NONE,
) -> Further:
    """Apply rules once, to all of an e-graph, and log it as an iteration.

    Args:
        egraph: explored by other rules.
        rules: whose targets no rule reads.
        options: the cycle filter; no limit holds.
        masks: by rule, the variables for which constants may be extreme.

    Raises:
        UnsoundRuleError: a rule would unite classes of different types; nothing was done.
        Interrupted, OutOfMemory: nothing was done.
    """
    database, started = egraph.database, time.perf_counter()
    statements = database.statements
    world = begin_world(egraph, rules, options)
    world.matcher.allow_extremes(masks)
    journal = Journal()
    with world.transaction():
        delta = step(world, world.rules.all_rules, StepBudget(sys.maxsize))
        report = IterationReport(
            world.steps,
            egraph.e_nodes,
            egraph.e_classes,
            delta.total_matches,
            delta.unions,
            delta.filtered,
            database.statements - statements,
            time.perf_counter() - started,
        )
        journal.note_matches(world.steps, delta.matches)
        journal.note_iteration(report)
        write_ending(egraph, world.matcher, journal)
    return Further(report, rule_stats(database, min(rule.id for rule in world.rules.rules)))
