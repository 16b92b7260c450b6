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
        rounds: rounds of unions.
    """

    merged: int = 0
    dropped: int = 0
    unions: int = 0
    rounds: int = 0


def rebuild(database: Database, *, iteration: int, stamp: int, first_round: int) -> Rebuilt:
    """Close the e-graph under the unions of ``first_round`` in the table ``union_log``.

    Args:
        stamp: the clock that is written into the rows that change.
    """
    merged = dropped = unions = 0
    number = first_round
    while True:
        database.run("union_links", round=number)
        merged += database.change("components")
        database.run("union_find")
        database.run("canonicalize", stamp=stamp)
        number += 1
        if not database.change("congruent", stamp=stamp):
            break
        found = database.change("congruence_unions", iteration=iteration, round=number)
        dropped += drop_duplicates(database)
        if not found:
            break
        unions += found
    return Rebuilt(merged, dropped, unions, number - first_round)


def drop_duplicates(database: Database) -> int:
    """Keep one e-node of each group in the table ``congruent``; return how many were dropped."""
    database.run("keep_filtered")
    return database.change("drop_duplicates")
