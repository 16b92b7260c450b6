"""Rebuild: after unions, make every id canonical and close the e-graph under congruence.

Set at a time (egg, Willsey et al. 2021, section 3, for the invariants): all unions of a phase become
components, all rows that mention a moved class are rewritten, rows that became equal ask for the next
unions; until there are none.
"""

from __future__ import annotations

from dataclasses import dataclass

from relational_tensat.egraph.database import Database


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild did: classes merged away, duplicate e-nodes dropped, unions asked for."""

    merged: int = 0
    dropped: int = 0
    unions: int = 0


def rebuild(database: Database, *, iteration: int, stamp: int, unions: int) -> Rebuilt:
    """Close the e-graph under the ``unions`` rows of the temporary table ``union_pair``."""
    merged = dropped = logged = 0
    while unions:
        logged += database.change("log_unions", iteration=iteration)
        merged += database.change("components")
        database.run("union_find")
        database.run("merge_heights")
        if not database.change("touched"):
            break
        database.run("canonicalize", stamp=stamp)
        unions = 0
        if database.change("congruent"):
            unions = database.change("congruence_unions")
            database.run("keep_filtered")
            dropped += database.change("drop_duplicates")
    return Rebuilt(merged, dropped, logged)
