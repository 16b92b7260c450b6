"""What every exploration writes beside its steps, whatever its strategy."""

from __future__ import annotations

import time

from relational_tensat.egraph.egraph import EGraph
from relational_tensat.explore.match.matcher import Matcher
from relational_tensat.explore.outcome import Exploration, Journal, rule_stats
from relational_tensat.explore.world import World


def end_exploration(
    world: World, journal: Journal, reason: str, iterations: int, started_s: float
) -> Exploration:
    """Write what is not written yet, and why exploration ended; return how it went.

    Args:
        started_s: when it began, by ``time.perf_counter``.
    """
    egraph = world.egraph
    with egraph.transaction():
        write_ending(egraph, world.matcher, journal)
        egraph.set_stop_reason(reason)
    return Exploration(
        reason,
        iterations,
        rule_stats(egraph.database, world.rules.first),
        tuple(journal.log),
        sum(entry.statements for entry in journal.log),
        time.perf_counter() - started_s,
    )


def write_down(egraph: EGraph, matcher: Matcher, journal: Journal) -> None:
    """Write what steps know without, in the caller's transaction: signatures, instances that unions name,
    iterations. A file has it after every transaction, so that what a killed process leaves is whole.
    """
    egraph.catalogue.flush(egraph.database)
    matcher.log_instances()
    journal.write(egraph.database)


def write_ending(egraph: EGraph, matcher: Matcher, journal: Journal) -> None:
    """Write what is not written yet, in the caller's transaction, and the seconds of rules."""
    write_down(egraph, matcher, journal)
    seconds = matcher.rule_seconds
    egraph.database.insert("rule_time", {"rule": list(seconds), "seconds": list(seconds.values())})
