"""What another process needs to resume a search over worlds of one universe."""

from __future__ import annotations

from relational_tensat.explore.checkpoint import Checkpoint, write_checkpoint
from relational_tensat.explore.journal import Journal
from relational_tensat.explore.worlds.applications import write_applications
from relational_tensat.explore.worlds.universe import Universe


def write_universe_checkpoint(
    universe: Universe, journal: Journal, iteration: int, original: int
) -> None:
    """Write signatures, iterations, applications and the checkpoint, in the caller's transaction.

    Args:
        iteration: the last one that is complete.
        original: e-nodes there were before the first iteration.
    """
    world = universe.world
    egraph, seconds = world.egraph, world.matcher.rule_seconds
    egraph.catalogue.flush(egraph.database)
    journal.write(egraph.database)
    write_applications(egraph.database, universe.applications)
    write_checkpoint(
        egraph,
        Checkpoint(
            world.rules.first,
            iteration=iteration,
            since_single=world.last_matched(world.rules.single_rules),
            since_multi=world.last_matched(world.rules.multi_rules),
            left_out=universe.is_full,
            original=original,
            rule_seconds=[seconds.get(rule.id, 0.0) for rule in world.rules.rules],
        ),
    )
