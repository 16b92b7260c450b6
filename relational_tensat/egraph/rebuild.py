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
    """What a rebuild did.

    Attributes:
        merged: classes merged into others.
        dropped: duplicate e-nodes dropped.
        unions: unions that congruence asked for.
    """

    merged: int = 0
    dropped: int = 0
    unions: int = 0


def rebuild(database: Database, *, iteration: int, stamp: int) -> Rebuilt:
    """Close the e-graph under the unions of round 0 in the temporary table ``union_pair``.

    Args:
        stamp: the clock that is written into the rows that change.
    """
    with database.stopwatch.phase("rebuild"):
        return _rebuild(database, iteration, stamp)


def _rebuild(database: Database, iteration: int, stamp: int) -> Rebuilt:
    merged = unions = dropped = number = 0
    while True:
        merged += database.change("components", round=number)
        database.run("union_find")
        database.run("canonicalize", stamp=stamp)
        number += 1
        if not database.change("congruent", stamp=stamp):
            break
        found = database.change("congruence_unions", round=number)
        if not found:
            dropped = database.change("drop_duplicates")
            break
        unions += found
    database.run("log_unions", iteration=iteration)
    return Rebuilt(merged, dropped, unions)
